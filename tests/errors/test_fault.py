"""`Fault`: fields in, message out, and nothing lost on the way to another process."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest

import failwell
from failwell import errors
from failwell.errors.axes import Blame, Certainty
from failwell.errors.facts import NotBefore, ProviderMetadata
from failwell.errors.fault import Fault, foreign_end, lineage
from failwell.errors.kind_registry import KindError
from failwell.testing.builders import make_fault


class Throttled(Fault, kind="provider.rate_limited"):
    """The gateway turned the call away."""

    gateway: str
    queue: int = 0

    def summary(self) -> str:
        return f"{self.gateway} turned the call away with {self.queue} waiting"


class Halted(Throttled):
    """The gateway is closed."""

    until: str = "never"


class Silent(Fault):
    """Only the docstring speaks.

    And only its first line.
    """


def a_chain(*, length: int) -> Fault:
    fault = make_fault(message="the leaf")
    for number in range(length):
        fault = Fault.wrap(fault, f"wrapper {number}")
    return fault


def test_a_subclass_composes_its_message_from_its_fields() -> None:
    assert str(Throttled(gateway="north", queue=3)) == "north turned the call away with 3 waiting"


def test_a_given_message_beats_the_composed_one() -> None:
    assert str(Throttled(gateway="north", message="closed for today")) == "closed for today"


def test_without_a_summary_the_docstrings_first_line_is_the_message() -> None:
    assert str(Silent()) == "Only the docstring speaks."


def test_a_plain_fault_says_what_its_kind_says() -> None:
    assert str(Fault(kind="provider.auth")) == errors.kind("provider.auth").summary
    assert str(Fault()) == ""


def test_a_field_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match="Throttled has no field `gatewy`; did you mean `gateway`"):
        Throttled(gatewy="north")  # pyright: ignore[reportCallIssue]


def test_a_field_without_a_default_is_required_by_name() -> None:
    with pytest.raises(TypeError, match="Throttled needs `gateway`"):
        Throttled()  # pyright: ignore[reportCallIssue]


def test_a_subclass_inherits_the_fields_of_its_class_and_adds_its_own() -> None:
    fault = Halted(gateway="north", until="noon")

    assert fault.own_fields() == {"gateway": "north", "queue": 0, "until": "noon"}
    assert fault.kind == "provider.rate_limited"


def test_axes_may_be_given_as_plain_words() -> None:
    fault = make_fault(certainty="not_sent", blame="host")

    assert (fault.certainty, fault.blame) == (Certainty.NOT_SENT, Blame.HOST)


def test_a_word_that_is_on_no_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="maybe"):
        make_fault(certainty="maybe")


@pytest.mark.parametrize("name", ["Rate limited", "ratelimited", ""])
def test_a_malformed_kind_is_refused_where_it_is_given(name: str) -> None:
    with pytest.raises(KindError, match="is not a kind"):
        Fault(kind=name)


def test_a_malformed_kind_is_refused_where_a_class_declares_it() -> None:
    with pytest.raises(KindError, match="Broken: 'nope' is not a kind"):

        class Broken(Fault, kind="nope"):  # pyright: ignore[reportUnusedClass]
            """Never made."""


def test_one_fault_may_declare_another_kind_than_its_class() -> None:
    fault = Throttled(gateway="north", kind="provider.overloaded")

    assert (fault.kind, Throttled.kind) == ("provider.overloaded", "provider.rate_limited")


def test_wrapping_adds_a_message_and_keeps_the_kind_and_the_cause() -> None:
    leaf = Throttled(gateway="north")

    wrapper = Fault.wrap(leaf, "while summarising")

    assert wrapper.kind == "provider.rate_limited"
    assert wrapper.own_kind is None
    assert wrapper.__cause__ is leaf
    assert (str(wrapper), str(leaf)) == ("while summarising", "north turned the call away with 0 waiting")


def test_the_line_of_inheritance_ends_at_a_foreign_exception() -> None:
    below = make_fault()
    foreign = RuntimeError("somebody else's")
    foreign.__cause__ = below
    top = Fault.wrap(foreign, "outside")

    assert lineage(top) == [top]
    assert foreign_end(top) is foreign
    assert top.kind is None


def test_the_line_of_inheritance_survives_a_cycle() -> None:
    first, second = Fault(message="first"), Fault(message="second")
    first.__cause__, second.__cause__ = second, first

    assert lineage(first) == [first, second]
    assert first.kind is None


def test_equal_faults_have_equal_class_fields_and_notes() -> None:
    one, other = Throttled(gateway="north"), Throttled(gateway="north")

    assert one == other
    assert hash(one) == hash(other)
    assert one != Throttled(gateway="south")
    assert one != Halted(gateway="north")
    assert one != "north"


def test_notes_count_as_part_of_a_fault() -> None:
    one, other = make_fault(), make_fault()

    one.add_note("during step 2")

    assert one != other


def test_a_repr_shows_what_was_set_and_nothing_else() -> None:
    assert repr(Throttled(gateway="north", retryable=False)) == "Throttled(gateway='north', retryable=False)"


def test_a_fault_reads_the_same_in_the_process_that_receives_it() -> None:
    sent = Throttled(
        gateway="north",
        queue=2,
        not_before=NotBefore(after=2.5),
        provider_metadata=ProviderMetadata(status_code=429),
        details={"batch": [1, 2]},
    )
    sent.add_note("during step 'summarise'")

    received = pickle.loads(pickle.dumps(sent))

    assert type(received) is Throttled
    assert received == sent
    assert (received.gateway, received.queue, received.kind) == ("north", 2, "provider.rate_limited")
    assert received.__notes__ == ["during step 'summarise'"]
    assert str(received) == str(sent)


def test_a_pickled_wrapper_keeps_the_faults_that_classify_it() -> None:
    received = pickle.loads(pickle.dumps(a_chain(length=5)))

    assert [str(link) for link in lineage(received)] == [
        "wrapper 4",
        "wrapper 3",
        "wrapper 2",
        "wrapper 1",
        "wrapper 0",
        "the leaf",
    ]
    assert received.kind == "provider.rate_limited"


def test_a_foreign_cause_travels_as_its_classification_without_its_words() -> None:
    wrapper = Fault.wrap(ConnectionRefusedError(111, "hunter2 refused"), "while connecting")
    expected = failwell.describe(wrapper).kind

    sent = pickle.dumps(wrapper)

    assert b"hunter2" not in sent
    assert failwell.describe(pickle.loads(sent)).kind == expected == "provider.connection"


def fail_in_another_process() -> None:
    raise Throttled(gateway="north", queue=7)


def test_a_fault_crosses_a_process_pool_and_leaves_it_usable() -> None:
    with ProcessPoolExecutor(max_workers=1) as pool:
        with pytest.raises(Throttled) as caught:
            pool.submit(fail_in_another_process).result()
        answer = pool.submit(abs, -3).result()

    assert (caught.value.gateway, caught.value.queue) == ("north", 7)
    assert answer == 3


def test_a_copy_is_equal_keeps_the_chain_and_is_independent() -> None:
    wrapper = Throttled.wrap(make_fault(), gateway="north")

    twin = copy.copy(wrapper)
    twin.gateway = "south"

    assert twin.__cause__ is wrapper.__cause__
    assert (wrapper.gateway, twin.gateway) == ("north", "south")


def test_a_deep_copy_is_equal() -> None:
    fault = Throttled(gateway="north", details={"list": [1]})

    assert copy.deepcopy(fault) == fault
