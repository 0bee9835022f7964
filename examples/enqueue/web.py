"""The web process: a handler that waits for the result, and two that do not."""

from fastapi import FastAPI
from tasks import count_words

from failwell.integrations.fastapi import install
from failwell.jobs import AsyncClient

app = FastAPI()
install(app)
client = AsyncClient()


@app.get("/words")
async def words(text: str, most: int = 3) -> dict[str, int]:
    """Submit a job and return its result."""
    job = await client.submit(count_words, text=text, most=most)
    return await job.result(timeout=30)


@app.post("/jobs", status_code=202)
async def submit(text: str) -> dict[str, str]:
    """Submit a job and return its id."""
    job = await client.with_options(priority=-1).submit(count_words, text=text)
    return {"job": job.id}


@app.get("/jobs/{job}")
async def status(job: str) -> dict[str, str]:
    """The status of a job."""
    return {"status": await client.job(job).status()}
