"""Folds the sequence numbers and epochs of producers, stretch by stretch (KIP-98, KIP-360).

Kafka's ProducerStateManager refuses what does not follow: within an epoch each batch begins with
the sequence number behind the last one, which wraps to 0 after 2^31-1; the first batch of a new
epoch begins with 0; an epoch never falls. A marker of a new epoch begins that epoch as well. What
the first batch of a producer begins with is not judged: Kafka accepts any where it knows nothing of
the producer. A finding compares two batches between which no offset is missing.
"""

from dataclasses import replace

from fencepost.pipeline.audit.sequence_stretch import (
    EXPIRATION_MS,
    FRESH,
    UNNUMBERED,
    UNSEEN,
    Fault,
    ProducerSequences,
    SequenceFinding,
    SequenceSummary,
    behind_marker,
    by_offset,
    finding_of,
    sequence_fault,
)
from fencepost.protocol.records import NO_SEQUENCE, increment_sequence


def merge(earlier: SequenceSummary, later: SequenceSummary) -> SequenceSummary:
    """The summary of two stretches, of which one follows on the other."""
    joint = earlier.end == later.start
    before_is_whole = joint and not earlier.holes
    behind_is_whole = joint and not later.holes
    findings = [*earlier.findings, *later.findings]
    producers: dict[int, ProducerSequences] = {}
    for producer, one in earlier.producers.items():
        producers[producer] = _extended(one, whole=behind_is_whole)
    for producer, other in later.producers.items():
        known = earlier.producers.get(producer)
        if known is None:
            producers[producer] = _prepended(other, whole=before_is_whole)
            continue
        findings += _between(producer, known, other, joint=joint)
        producers[producer] = _joined(
            known, producers[producer], _prepended(other, whole=before_is_whole), other
        )
    return SequenceSummary(
        start=earlier.start,
        end=later.end,
        holes=earlier.holes + later.holes + (not joint),
        producers=producers,
        findings=tuple(sorted(findings, key=by_offset)),
    )


def _extended(one: ProducerSequences, *, whole: bool) -> ProducerSequences:
    """With more of the log behind it."""
    if whole:
        return one
    return replace(
        one, end=replace(one.end, whole=False), reference=replace(one.reference, whole=False)
    )


def _prepended(one: ProducerSequences, *, whole: bool) -> ProducerSequences:
    """With more of the log before it."""
    if whole:
        return one
    data = one.data and replace(one.data, point=replace(one.data.point, whole=False))
    begin = replace(one.begin, point=replace(one.begin.point, whole=False))
    return replace(one, begin=begin, data=data)


def _between(
    producer: int, one: ProducerSequences, other: ProducerSequences, *, joint: bool
) -> list[SequenceFinding]:
    """What is wrong where one stretch follows on the other."""
    found = []
    begin, data = other.begin, other.data
    if begin.epoch < one.epoch and begin.point.time - one.end.time < EXPIRATION_MS:
        found.append(
            finding_of(
                begin,
                producer,
                Fault.EPOCH,
                expected=0,
                epoch_before=one.epoch,
                offset_before=one.end.offset,
            )
        )
    if data is None or data.first == NO_SEQUENCE or data.epoch < one.epoch:
        return found
    is_new = data.epoch > one.epoch or one.sequence == FRESH
    if not is_new and one.sequence in (UNSEEN, UNNUMBERED):
        return found
    reference = one.end if data.epoch > one.epoch else one.reference
    expected = 0 if is_new else increment_sequence(one.sequence, 1)
    comparable = joint and reference.whole and data.point.whole
    comparable &= data.point.time - reference.time < EXPIRATION_MS
    if comparable and data.first != expected:
        fault = Fault.NEW_EPOCH if is_new else sequence_fault(data.first, expected)
        found.append(
            finding_of(
                data,
                producer,
                fault,
                expected=expected,
                epoch_before=data.epoch,
                offset_before=reference.offset,
            )
        )
    return found


def _joined(
    one: ProducerSequences,
    extended: ProducerSequences,
    prepended: ProducerSequences,
    other: ProducerSequences,
) -> ProducerSequences:
    """Both ends of two stretches, each with the other beside it."""
    data = one.data
    if data is None and one.sequence == UNSEEN and other.begin.epoch == one.epoch:
        data = prepended.data
    sequence, reference = other.sequence, other.reference
    if other.sequence == UNSEEN and other.epoch == one.epoch:
        sequence, reference = extended.sequence, extended.reference
        if sequence == UNSEEN:
            reference = other.reference
    elif other.sequence == UNSEEN:
        sequence = behind_marker(other.epoch, one.epoch)
        reference = extended.end
    return ProducerSequences(
        begin=one.begin,
        data=data,
        end=other.end,
        epoch=other.epoch,
        sequence=sequence,
        reference=reference,
    )


def verdict(summary: SequenceSummary, log_start: int) -> list[SequenceFinding]:
    """The findings that nothing explains.

    :param log_start: What a broker knew of a producer from before it may be gone with the records.
    """
    return [each for each in summary.findings if each.offset_before >= log_start]
