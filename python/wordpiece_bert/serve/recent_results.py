"""Results of recent requests by content, so that the same text is computed once."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from wordpiece_bert._internal.recent import Recent
from wordpiece_bert.serve.pair_encoder import PairRow, PairRows
from wordpiece_bert.tokenizer.ragged_batch import RaggedBatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    import numpy.typing as npt

    from wordpiece_bert.serve.metrics import Metrics
    from wordpiece_bert.serve.settings import ServerSettings


class RecentResults:
    """The results of one model that were asked for last, by the ids or texts of a row and the key of its batch.

    A result does not depend on the rest of its batch, so a kept one has the bits of a computed one.

    Parameters
    ----------
    settings : ServerSettings
        ``result_cache_bytes`` is the most memory; 0 for no results at all.
    metrics : Metrics
        Counts the results that were kept.
    name : str
        The name of the model, for the metrics.
    """

    def __init__(self, settings: ServerSettings, metrics: Metrics, name: str) -> None:
        self._metrics, self._name = metrics, name
        #: By key and content the result, and whether it is a row of an array.
        self._kept = Recent(settings.result_cache_bytes)
        metrics.recent_bytes.read(lambda: self._kept.size, model=name)

    async def results(
        self,
        submit: Callable[[Any, npt.NDArray[np.int64], Hashable], Awaitable[Any]],
        rows: Any,
        lengths: npt.NDArray[np.int64],
        key: Hashable = None,
    ) -> Any:
        """Return the results of rows, an array or a list; those that are not kept come from `submit`, `Batcher.submit`.

        Parameters
        ----------
        submit : callable
            Takes rows, their lengths and the key.
        rows : RaggedBatch, PairRows or list
            Rows of ids, rows of pairs, or a list of either rows of pairs or hashable values.
        lengths : array
            The number of tokens of each row, [rows].
        key : hashable
            What results depend on beside the row.
        """
        if not self._kept.most:
            return await submit(rows, lengths, key)
        if isinstance(rows, PairRows):
            rows = rows[0 : len(lengths)]
        contents = [(key, _content(row)) for row in rows]
        looked_up = enumerate(map(self._kept.get, contents))
        found = {index: result for index, result in looked_up if result is not None}
        if not found:
            results = await submit(rows, lengths, key)
            self._keep(contents, results)
            return results
        self._metrics.recent.add(len(found), model=self._name)
        missing = np.array([index for index in range(len(contents)) if index not in found], np.intp)
        if len(missing):
            results = await submit(_chosen(rows, missing), lengths[missing], key)
            self._keep([contents[index] for index in missing], results)
            is_array = isinstance(results, np.ndarray)
            found |= {index: (result, is_array) for index, result in zip(missing.tolist(), results, strict=True)}
        ordered = [found[index][0] for index in range(len(contents))]
        return np.stack(ordered) if found[0][1] else ordered

    def _keep(self, contents: list[Any], results: Any) -> None:
        """Keep results."""
        is_array = isinstance(results, np.ndarray)
        for content, result in zip(contents, results, strict=True):
            self._kept.keep(content, (_copy(result), is_array), _bytes_of(content[1]) + _bytes_of(result))


def _content(row: Any) -> Hashable:
    """Return what a row is, hashable."""
    if isinstance(row, np.ndarray):
        return row.tobytes()
    return (row.ids.tobytes(), row.token_type_ids.tobytes()) if isinstance(row, PairRow) else row


def _chosen(rows: Any, numbers: npt.NDArray[np.intp]) -> Any:
    """Return some of the rows."""
    if not isinstance(rows, RaggedBatch):
        return [rows[number] for number in numbers.tolist()]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(rows.lengths[numbers])])
    ids = np.concatenate([rows[number] for number in numbers.tolist()])
    return RaggedBatch(ids=ids, row_offsets=ends, truncated=rows.truncated[numbers])


def _copy(result: Any) -> Any:
    """Return a result that nobody changes, and that keeps no batch in memory."""
    if isinstance(result, tuple):
        parts = map(_copy, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    if isinstance(result, np.ndarray):
        result = result.copy()
        result.flags.writeable = False
    return result


def _bytes_of(value: Any) -> int:
    """Return the memory of arrays, texts, and tuples of them."""
    if isinstance(value, tuple):
        return sys.getsizeof(value) + sum(map(_bytes_of, value))
    return value.nbytes + 128 if isinstance(value, np.ndarray) else sys.getsizeof(value)
