"""Plugins of agents: folders that hold skills, agents to call and MCP servers. Nothing is fetched."""

from collections.abc import Mapping
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any, cast

from failwell.errors.frozen import frozen
from failwell.workflows.skills.skills import Skill, SkillInvalid, front_matter, is_path, read_skill

_MANIFESTS = (".claude-plugin/plugin.json", ".github/plugin/plugin.json", "plugin.json")
_INSTALLED = ("~/.copilot/installed-plugins", "~/.claude/plugins")
_REMOTE = ("http://", "https://", "ssh://", "git@")


@frozen
class PluginAgent:
    """An agent that a plugin offers: another model turn with its own instructions."""

    name: str
    description: str
    text: str


@frozen
class Plugin:
    """What a plugin brings, as far as its entry asks for it."""

    name: str
    skills: tuple[Skill, ...] = ()
    agents: tuple[PluginAgent, ...] = ()
    servers: Mapping[str, Mapping[str, Any]] | None = None


def find_plugin(entry: Any, sources: Mapping[str, Any], base: str) -> Plugin:
    """The plugin that an entry of `plugins` names.

    Args:
        entry: A path, a name, `name@source`, or a mapping with `name` and the parts that are wanted.
        sources: `plugin_sources`: name → a path, or a mapping with `source` and `path`.
        base: The folder that paths are relative to.

    Raises:
        SkillInvalid: it is not there, or cannot be used.
    """
    settings = {"name": entry} if isinstance(entry, str) else dict(cast("Mapping[str, Any]", entry))
    name: str = settings["name"]
    folder = _folder(name, sources, Path(base))
    manifest = next((folder / path for path in _MANIFESTS if (folder / path).is_file()), None)
    if manifest is None:
        raise SkillInvalid(f"the plugin `{name}` has no plugin.json in {folder}")
    called = str(_json(manifest).get("name") or folder.name)
    return Plugin(
        name=called,
        skills=tuple(_skills(folder)) if settings.get("skills", True) else (),
        agents=tuple(_agents(folder)) if settings.get("agents", True) else (),
        servers=_servers(folder) if settings.get("mcp", True) else {},
    )


def _folder(name: str, sources: Mapping[str, Any], base: Path) -> Path:
    if is_path(name):
        return base / Path(name).expanduser()
    plugin, _, source = name.partition("@")
    if source in sources:
        written = sources[source]
        place = {"source": written} if isinstance(written, str) else dict(cast("Mapping[str, Any]", written))
        address: str = place["source"]
        if address.startswith(_REMOTE) or not address.startswith((".", "~", "/")):
            raise SkillInvalid(
                f"the plugin source `{source}` is remote, and nothing is fetched; clone it and name its path, such as ./{source}"
            )
        root = base / Path(address).expanduser() / place.get("path", "")
        return _named(plugin, root)
    roots = [Path(root).expanduser() for root in _INSTALLED]
    pattern = f"{source}/{plugin}" if source else f"*/{plugin}"
    found = [path for root in roots for path in root.glob(pattern) if path.is_dir()]
    if len(found) != 1:
        reason = "is not installed" if not found else "is installed more than once; write `name@source`"
        raise SkillInvalid(f"the plugin `{name}` {reason}, or name its path, such as ./{plugin}")
    return found[0]


def _named(plugin: str, root: Path) -> Path:
    """A plugin in a source: the source itself, or the folder of that name in it."""
    for folder in (root, root / plugin, root / "plugins" / plugin):
        for path in _MANIFESTS:
            if (folder / path).is_file() and _json(folder / path).get("name", plugin) == plugin:
                return folder
    raise SkillInvalid(f"there is no plugin `{plugin}` in {root}")


def _skills(folder: Path) -> list[Skill]:
    root = folder / "skills"
    return (
        [read_skill(path) for path in sorted(root.iterdir()) if (path / "SKILL.md").is_file()]
        if root.is_dir()
        else []
    )


def _agents(folder: Path) -> list[PluginAgent]:
    root = folder / "agents"
    agents: list[PluginAgent] = []
    for file in sorted(root.glob("*.md")) if root.is_dir() else ():
        fields, body = front_matter(file)
        name = fields.get("name") or file.name.removesuffix(".md").removesuffix(".agent")
        agents.append(
            PluginAgent(
                name=name.strip(), description=fields.get("description", "").strip(), text=body.strip()
            )
        )
    return agents


def _servers(folder: Path) -> dict[str, Mapping[str, Any]]:
    file = folder / ".mcp.json"
    if not file.is_file():
        return {}
    document = _json(file)
    servers: object = document.get("mcpServers", document)
    if not isinstance(servers, Mapping):
        raise SkillInvalid(f"{file} has no `mcpServers`")
    known = cast("Mapping[str, Any]", servers)
    return {
        name: cast("Mapping[str, Any]", settings)
        for name, settings in known.items()
        if isinstance(settings, Mapping)
    }


def _json(file: Path) -> Mapping[str, Any]:
    try:
        value: object = loads(file.read_text("utf-8"))
    except (OSError, UnicodeError, JSONDecodeError, RecursionError) as error:
        raise SkillInvalid(f"{file} is not a JSON file") from error
    if not isinstance(value, Mapping):
        raise SkillInvalid(f"{file} is not a JSON object")
    return cast("Mapping[str, Any]", value)
