# Types of the compiled part, which the classes of the package wrap. The binding checks what is typed `object` here and
# raises InputError for a value that it cannot use.

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Never, NoReturn, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt

from wordpiece_bert.options import PaddingSettings, TruncationSettings

__all__ = [
    "SPECIAL_TOKEN_ROLES",
    "UNICODE_VERSIONS",
    "BertEncoder",
    "BertNormalizer",
    "Counted",
    "EncoderTraining",
    "Encoding",
    "ExampleBlock",
    "ExampleBuilder",
    "ExampleReader",
    "ExampleShard",
    "MaskingRules",
    "MdsEncoder",
    "Options",
    "PackedBottleneck",
    "PackedDense",
    "PackedLayer",
    "ReportSums",
    "Reporter",
    "Rows",
    "StaticEmbeddings",
    "TextBlock",
    "TextReader",
    "TfrecordEncoder",
    "TokenStoreBuilder",
    "Tokenizer",
    "Trained",
    "VocabularyHead",
    "WordCounts",
    "__version__",
    "_arrow_array",
    "_arrow_schema",
    "_arrow_stream",
    "_column_texts",
    "_panic",
    "_restore_encoding",
    "_same_objects",
    "adamw_step",
    "cross_entropy",
    "dense",
    "describe_products",
    "epoch_order",
    "kernel_instruction_sets",
    "keyed_draws",
    "linear_backward",
    "maxsim",
    "maxsim_pairwise",
    "num_threads",
    "pack_sequences",
    "quantize",
    "search_floats",
    "search_packed_bits",
    "search_small_integers",
    "set_num_threads",
    "split_sentences",
    "sums_of_squares",
    "text_document_id",
    "token_states",
]

#: int8 numbers [out, in] and float32 scales [out, groups].
_Int8: TypeAlias = tuple[npt.NDArray[np.int8], npt.NDArray[np.float32], npt.NDArray[np.float32]]
# `bytes` is also the name of a property.
_Bytes: TypeAlias = bytes
#: γ and β of a norm.
_Norm: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
#: Numbers and the name of their type.
_Stored: TypeAlias = tuple[npt.NDArray[np.generic] | _Int8, str]
#: What a DeBERTa has besides the layers of BERT: K, M, the divisor of scores, relative positions, the convolution.
_Disentangled: TypeAlias = tuple[
    int,
    int,
    int,
    list[tuple[npt.NDArray[np.float32] | None, npt.NDArray[np.float32] | None]],
    tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], str, _Norm] | None,
]

__version__: Final[str]
UNICODE_VERSIONS: Final[str]
#: Roles and their usual tokens, in the order in which transformers registers them.
SPECIAL_TOKEN_ROLES: Final[list[tuple[str, str]]]

def set_num_threads(n: int | None) -> None: ...
def _arrow_schema(
    arrays: list[tuple[str, npt.NDArray[Any]]], row_offsets: npt.NDArray[Any], single: bool
) -> object: ...
def _arrow_array(
    arrays: list[tuple[str, npt.NDArray[Any]]], row_offsets: npt.NDArray[Any], single: bool
) -> tuple[object, object]: ...
def _arrow_stream(
    arrays: list[tuple[str, npt.NDArray[Any]]], row_offsets: npt.NDArray[Any], single: bool
) -> object: ...
def _column_texts(texts: object) -> list[str] | None: ...
def _same_objects(left: tuple[object, ...], right: tuple[object, ...]) -> bool: ...
def _panic(message: bytes, place: str) -> None: ...
def _restore_encoding(state: dict[str, Any]) -> Encoding: ...

@final
class Encoding:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def ids(self) -> list[int]: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def offsets(self) -> list[tuple[int, int]]: ...
    @property
    def word_ids(self) -> list[int | None]: ...
    @property
    def sequence_ids(self) -> list[int | None]: ...
    @property
    def token_type_ids(self) -> list[int]: ...
    @property
    def type_ids(self) -> list[int]: ...
    @property
    def attention_mask(self) -> list[int]: ...
    @property
    def special_tokens_mask(self) -> list[int]: ...
    @property
    def overflowing(self) -> list[Encoding]: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_sequences(self) -> int: ...
    def char_to_token(self, char_pos: int, sequence_index: int | None = None) -> int | None: ...
    def char_to_word(self, char_pos: int, sequence_index: int | None = None) -> int | None: ...
    def token_to_chars(self, token_index: int) -> tuple[int, int] | None: ...
    def token_to_word(self, token_index: int) -> int | None: ...
    def token_to_sequence(self, token_index: int) -> int | None: ...
    def word_to_tokens(self, word_index: int, sequence_index: int | None = None) -> tuple[int, int] | None: ...
    def word_to_chars(self, word_index: int, sequence_index: int | None = None) -> tuple[int, int] | None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Never, /) -> NoReturn: ...
    def __array__(self, dtype: object = None, copy: bool | None = None) -> npt.NDArray[Any]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def _repr_html_(self) -> str: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@final
class Options:
    @property
    def truncation(self) -> TruncationSettings | None: ...
    @property
    def padding(self) -> PaddingSettings | None: ...

@final
class TextReader:
    def __new__(
        cls,
        files: Sequence[str | None],
        separator: str | None,
        fields: Sequence[str],
        errors: str,
        block_texts: int | None,
        second_is_id: bool = False,
        *,
        columns: Sequence[str] = ...,
        table: str = "csv",
    ) -> Self: ...
    def next_block(self) -> TextBlock | None: ...

@final
class TextBlock:
    @staticmethod
    def from_arrow(
        name: str,
        first_row: int,
        columns: Sequence[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint8] | None]],
        errors: str,
    ) -> TextBlock: ...
    def __len__(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def skipped_count(self) -> int: ...
    @property
    def skipped(self) -> list[str]: ...
    def location(self, i: int) -> str: ...
    def texts(self) -> list[Any]: ...
    def utf8(self) -> tuple[_Bytes, npt.NDArray[np.int64]]: ...
    def parts(self, min_tokens: int, copies: int, max_tokens: int) -> list[TextBlock]: ...
    def encode(self, tokenizer: Tokenizer, options: Options, columns: list[str], threads: int | None) -> Rows: ...

# The nearest rows, int64 [n, k], and their scores, float64 [n, k]; arrays are read in place.
def search_floats(
    queries: npt.NDArray[np.float32],
    collection: npt.NDArray[np.float32],
    metric: str,
    top_k: int,
    threads: int | None,
    instruction_set: str | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
def search_packed_bits(
    queries: npt.NDArray[np.uint8],
    collection: npt.NDArray[np.uint8],
    top_k: int,
    threads: int | None,
    instruction_set: str | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
def search_small_integers(
    queries: npt.NDArray[np.uint8],
    collection: npt.NDArray[np.uint8],
    are_signed: bool,
    top_k: int,
    threads: int | None,
    instruction_set: str | None,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...

@final
class StaticEmbeddings:
    def __new__(
        cls,
        table: npt.NDArray[np.float32],
        mapping: npt.NDArray[np.uint32] | None,
        weights: npt.NDArray[np.float32] | None,
    ) -> Self: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    def arrays(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.uint32] | None, npt.NDArray[np.float32] | None]: ...
    def __reduce__(self) -> tuple[type[StaticEmbeddings], tuple[Any, ...]]: ...
    def tokens(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]: ...
    def encode(
        self,
        tokenizer: Tokenizer,
        texts: object,
        options: Options,
        max_chars: int | None,
        dropped: int | None,
        least_length: float | None,
        threads: int | None,
        instruction_set: str | None,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], int]: ...
    def encode_block(
        self,
        tokenizer: Tokenizer,
        block: TextBlock,
        options: Options,
        max_chars: int | None,
        dropped: int | None,
        least_length: float | None,
        threads: int | None,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_], int]: ...

@final
class PackedLayer:
    def __new__(
        cls,
        qkv: PackedDense,
        output: PackedDense,
        output_norm: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None,
        inner: PackedDense,
        up: PackedDense | None,
        outer: PackedDense,
        outer_norm: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]],
        query_key_norms: tuple[_Norm, _Norm] | None = None,
        second_norm: _Norm | None = None,
    ) -> Self: ...
    def __reduce__(self) -> tuple[type[PackedLayer], tuple[Any, ...]]: ...

@final
class PackedDense:
    def __new__(
        cls,
        names: list[str],
        layers: Sequence[tuple[_Stored, npt.NDArray[np.float32]]],
        dtype: str,
        instruction_set: str | None = None,
        factors: npt.NDArray[np.float32] | None = None,
        *,
        observed: bool = False,
    ) -> Self: ...
    def multiply(
        self, x: npt.NDArray[np.float32], activation: str, threads: int | None = None
    ) -> npt.NDArray[np.float32]: ...
    def weight(self, name: str) -> npt.NDArray[Any] | _Int8: ...
    def factors(self) -> npt.NDArray[np.float32] | None: ...
    def observations(self) -> tuple[int, npt.NDArray[np.float64], npt.NDArray[np.float32]] | None: ...
    def __reduce__(self) -> tuple[type[PackedDense], tuple[Any, ...]]: ...

@final
class PackedBottleneck:
    def __new__(
        cls,
        narrow: tuple[PackedDense, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None]] | None,
        shared: tuple[PackedDense, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None]] | None,
        query_key: PackedDense,
        value: PackedDense,
        output: tuple[PackedDense, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None]],
        feed_forward: list[
            tuple[
                PackedDense,
                tuple[PackedDense, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None]],
            ]
        ],
        back: tuple[PackedDense, tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None]] | None,
        *,
        hidden: int,
        queries_from: str,
        values_from: str,
    ) -> Self: ...

@final
class BertEncoder:
    def __new__(
        cls,
        layers: list[PackedLayer],
        bottlenecks: list[PackedBottleneck],
        words: _Stored,
        positions: _Stored | None,
        types: _Stored | None,
        transformation: PackedDense | None,
        embedding_norm: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None] | None,
        projection: tuple[_Stored, npt.NDArray[np.float32]] | None,
        last_norm: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None,
        distances: npt.NDArray[np.float32] | None,
        rotary: list[npt.NDArray[np.float32]],
        layer_positions: list[tuple[int | None, int | None]],
        *,
        embedding: int,
        heads: int,
        activation: str,
        eps: float,
        norm_first: bool = False,
        rms_norm: bool = False,
        slopes: npt.NDArray[np.float32] | None = None,
        disentangled: _Disentangled | None = None,
        instruction_set: str | None = None,
    ) -> Self: ...
    def forward(
        self,
        ids: npt.NDArray[np.uint32],
        types: npt.NDArray[np.uint32],
        position_ids: npt.NDArray[np.uint32],
        neighbours: npt.NDArray[np.uint32],
        positions: npt.NDArray[np.uint32],
        row_offsets: npt.NDArray[np.int64],
        keys: npt.NDArray[np.int64],
        vectors: npt.NDArray[np.float32] | None,
        length: int,
        states: list[int],
        attentions: bool,
        threads: int | None,
    ) -> tuple[list[npt.NDArray[np.float32]], list[npt.NDArray[np.float32]]]: ...
    def pooled(
        self,
        ids: npt.NDArray[np.uint32],
        position_ids: npt.NDArray[np.uint32],
        neighbours: npt.NDArray[np.uint32],
        row_offsets: npt.NDArray[np.int64],
        modes: list[str],
        skip: int,
        threads: int | None,
    ) -> npt.NDArray[np.float32]: ...
    @property
    def instruction_set(self) -> str: ...

def dense(
    x: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float32],
    bias: npt.NDArray[np.float32],
    activation: str,
    threads: int | None = None,
    instruction_set: str | None = None,
) -> npt.NDArray[np.float32]: ...
def quantize(weight: _Stored, factors: npt.NDArray[np.float32]) -> _Int8 | None: ...
def kernel_instruction_sets() -> list[str]: ...
def describe_products(dtype: str, instruction_set: str | None = None) -> tuple[str, str, bool, str]: ...
def num_threads(threads: int | None = None) -> int: ...
def token_states(
    encoder: BertEncoder,
    ids: npt.NDArray[np.uint32],
    position_ids: npt.NDArray[np.uint32],
    neighbours: npt.NDArray[np.uint32],
    row_offsets: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int64],
    threads: int | None,
    vectors: npt.NDArray[np.float32] | None = None,
) -> npt.NDArray[np.float32]: ...
def maxsim(
    queries: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
    documents: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
    threads: int | None = None,
    instruction_set: str | None = None,
) -> npt.NDArray[np.float32]: ...
def maxsim_pairwise(
    queries: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
    documents: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]],
    threads: int | None = None,
    instruction_set: str | None = None,
) -> npt.NDArray[np.float32]: ...

@final
class VocabularyHead:
    def __new__(
        cls,
        dense: PackedDense,
        activation: str,
        norm: tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], float | None],
        decoder: PackedDense,
        instruction_set: str | None = None,
    ) -> Self: ...
    def encode(
        self,
        x: npt.NDArray[np.float32],
        row_offsets: npt.NDArray[np.int64],
        pooling: str,
        twice: bool,
        max_values: int | None,
        threads: int | None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]: ...
    @property
    def vocabulary(self) -> int: ...

#: Weight and bias, or γ and β.
_Affine: TypeAlias = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]
#: Words or word vectors, positions, types, norm and projection.
_Embeddings: TypeAlias = tuple[
    npt.NDArray[np.float32],
    npt.NDArray[np.float32] | None,
    npt.NDArray[np.float32] | None,
    _Affine,
    _Affine | None,
]
#: Query, key and value; layers of their own that relative positions have; the attention's output, its norm, the first
#: dense layer, what its gate multiplies, the second dense layer, the other norm.
_TrainedLayer: TypeAlias = tuple[
    list[_Affine],
    list[_Affine | None],
    _Affine,
    _Affine | None,
    _Affine,
    _Affine | None,
    _Affine,
    _Affine,
]
#: How a DeBERTa differs from BERT: by how much scores are scaled down besides d; K, M (0 without buckets), whether
#: there are the terms of keys and of queries, the table of relative positions and its norm; the convolution, the name
#: of its activation and its norm.
_TrainedDisentangled: TypeAlias = tuple[
    int,
    tuple[int, int, list[bool], npt.NDArray[np.float32], _Affine | None] | None,
    tuple[_Affine, str, _Affine] | None,
]
#: The embeddings, the different layers, the number of each layer among them, MPNet's bias by distance, the norm after
#: the last layer, the frequencies of rotary positions, for each layer the number of its own, and its window; and how a
#: DeBERTa differs.
_EncoderParameters: TypeAlias = tuple[
    _Embeddings,
    list[_TrainedLayer],
    list[int],
    npt.NDArray[np.float32] | None,
    _Affine | None,
    tuple[list[npt.NDArray[np.float32]], list[tuple[int | None, int | None]]],
    _TrainedDisentangled | None,
]

@final
class EncoderTraining:
    def __new__(
        cls,
        *,
        hidden: int,
        embedding: int,
        heads: int,
        intermediate: int,
        activation: str,
        eps: float,
        norm_first: bool,
        gated: bool,
        dtype: str = "float32",
        instruction_set: str | None = None,
    ) -> Self: ...
    def forward(
        self,
        parameters: _EncoderParameters,
        batch: tuple[
            npt.NDArray[np.int64],
            npt.NDArray[np.int64],
            npt.NDArray[np.uint32] | None,
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
            npt.NDArray[np.uint32],
        ],
        dropout: tuple[list[int], list[float]] | None,
        trained_from: int | None,
        checkpointing: bool,
        threads: int | None,
    ) -> npt.NDArray[np.float32]: ...
    def backward(
        self,
        parameters: _EncoderParameters,
        dx: npt.NDArray[np.float32],
        embeddings: tuple[
            tuple[npt.NDArray[np.float32], int | None] | None,
            tuple[npt.NDArray[np.float32], int | None] | None,
            npt.NDArray[np.float32] | None,
            _Affine,
            _Affine | None,
        ]
        | None,
        layers: list[_TrainedLayer],
        relative_bias: npt.NDArray[np.float32] | None,
        last_norm: _Affine | None,
        disentangled: tuple[tuple[npt.NDArray[np.float32], _Affine | None] | None, list[_Affine] | None] | None,
        threads: int | None,
    ) -> npt.NDArray[np.float32] | None: ...

def linear_backward(
    dy: npt.NDArray[np.float32],
    x: npt.NDArray[np.float32],
    weight: npt.NDArray[np.float32],
    threads: int | None = None,
    instruction_set: str | None = None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32]]: ...
def cross_entropy(
    logits: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    threads: int | None = None,
    instruction_set: str | None = None,
) -> float: ...
def sums_of_squares(gradients: list[npt.NDArray[np.float32]], threads: int | None = None) -> list[float]: ...
def adamw_step(
    parameters: list[
        tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.float32], float]
    ],
    *,
    factor: float,
    betas: tuple[float, float],
    eps: float,
    rate: float,
    step: int | None,
    threads: int | None = None,
) -> None: ...

@final
class Rows:
    @property
    def ids(self) -> npt.NDArray[Any]: ...
    @property
    def row_offsets(self) -> npt.NDArray[np.int64]: ...
    @property
    def type_ids(self) -> npt.NDArray[Any] | None: ...
    @property
    def attention_mask(self) -> npt.NDArray[Any] | None: ...
    @property
    def special_tokens_mask(self) -> npt.NDArray[Any] | None: ...
    @property
    def offsets(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def word_ids(self) -> npt.NDArray[np.int32] | None: ...
    @property
    def sequence_ids(self) -> npt.NDArray[np.int32] | None: ...
    @property
    def overflow_to_sample(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def n_tokens(self) -> npt.NDArray[np.int64] | None: ...
    @property
    def truncated(self) -> npt.NDArray[np.bool_]: ...
    @property
    def shape(self) -> tuple[int, int] | None: ...
    def model_inputs(self) -> dict[str, npt.NDArray[Any]]: ...
    def fill(self, batch: object) -> None: ...

@final
class BertNormalizer:
    def __new__(
        cls, *, lowercase: bool, strip_accents: bool | None, clean_text: bool, tokenize_chinese_chars: bool
    ) -> Self: ...
    @property
    def lowercase(self) -> bool: ...
    @property
    def strip_accents(self) -> bool | None: ...
    @property
    def clean_text(self) -> bool: ...
    @property
    def tokenize_chinese_chars(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Tokenizer:
    @staticmethod
    def from_json(text: str) -> Tokenizer: ...
    @staticmethod
    def restore(text: str) -> Tokenizer: ...
    @staticmethod
    def from_vocab(
        vocab: bytes | list[str] | dict[str, int],
        special_tokens: dict[str, str],
        normalizer: BertNormalizer,
        *,
        strict: bool,
        continuing_subword_prefix: str,
        max_input_chars_per_word: int,
    ) -> tuple[Tokenizer, list[str]]: ...
    def to_json(self) -> str: ...
    def snapshot(self) -> str: ...
    def with_settings(self, truncation: TruncationSettings | None, padding: PaddingSettings | None) -> Tokenizer: ...
    def to_vocab_txt(self) -> str | None: ...
    def with_added_tokens(self, tokens: list[tuple[str, bool, bool, bool, bool, bool]]) -> Tokenizer: ...
    def with_tokens(
        self,
        vocab: dict[str, int],
        added: list[tuple[int, tuple[str, bool, bool, bool, bool, bool]]],
        *,
        template: bool,
    ) -> Tokenizer: ...
    def added_tokens(self) -> list[tuple[int, tuple[str, bool, bool, bool, bool, bool]]]: ...
    def with_bert_template(self, cls: str, sep: str) -> Tokenizer: ...
    def with_lowercase(self) -> Tokenizer: ...
    def roles(self) -> dict[str, str]: ...
    def bert_options(self, special_tokens: dict[str, str]) -> BertNormalizer | None: ...
    @property
    def unk_token(self) -> str: ...
    @property
    def continuing_subword_prefix(self) -> str: ...
    @property
    def max_input_chars_per_word(self) -> int: ...
    @property
    def normalizer_type(self) -> str | None: ...
    @property
    def bert_normalizer(self) -> BertNormalizer | None: ...
    @property
    def pre_tokenizer_type(self) -> str | None: ...
    @property
    def pipeline(self) -> str: ...
    def identity(self) -> str: ...
    @property
    def instruction_set(self) -> str | None: ...
    @staticmethod
    def instruction_sets() -> list[str]: ...
    def with_instruction_set(self, name: str | None) -> Tokenizer: ...
    @property
    def truncation(self) -> TruncationSettings | None: ...
    @property
    def padding(self) -> PaddingSettings | None: ...
    @property
    def memory_bytes_per_thread(self) -> int: ...
    @property
    def unk_id(self) -> int: ...
    @property
    def largest_id(self) -> int | None: ...
    def options(
        self,
        add_special_tokens: bool,
        truncation: TruncationSettings | None,
        padding: PaddingSettings | None,
        offset_unit: str,
        encode_special_tokens: bool,
    ) -> Options: ...
    def encode(self, text: object, pair: object, split: bool, options: Options) -> Encoding: ...
    def encode_ids(self, text: object, pair: object, options: Options) -> npt.NDArray[np.uint32]: ...
    def encodings(self, texts: object, split: bool, options: Options, threads: int | None) -> list[Encoding]: ...
    def encode_batch(
        self,
        texts: object,
        pairs: object,
        split: bool,
        options: Options,
        columns: list[str],
        wide: bool,
        threads: int | None,
    ) -> Rows: ...
    @staticmethod
    def is_single(text: object, split: bool) -> bool: ...
    def decode(self, ids: object, skip_special_tokens: bool, cleanup: bool, strict: bool) -> str: ...
    def decode_batch(self, ids: object, skip_special_tokens: bool, cleanup: bool, strict: bool) -> list[str]: ...
    def words(self, text: str) -> tuple[str, list[str]]: ...
    def join_tokens(self, tokens: list[str]) -> str: ...
    def token_to_id(self, token: str) -> int | None: ...
    def id_to_token(self, token_id: int) -> str | None: ...
    def vocab(self, with_added_tokens: bool) -> dict[str, int]: ...
    def vocab_size(self, with_added_tokens: bool) -> int: ...
    def special_tokens_added(self, pair: bool) -> int: ...
    def summary(self) -> str: ...

@final
class WordCounts:
    @property
    def total(self) -> int: ...
    @staticmethod
    def from_files(
        paths: list[str], options: dict[str, Any], threads: int | None, observer: Callable[..., object] | None
    ) -> Counted: ...
    @staticmethod
    def from_texts(
        texts: object, options: dict[str, Any], threads: int | None, observer: Callable[..., object] | None
    ) -> Counted: ...
    @staticmethod
    def from_columns(text: bytes, ends: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> WordCounts: ...
    def columns(self) -> tuple[bytes, npt.NDArray[np.int64], npt.NDArray[np.uint64]]: ...
    def items(self, most: int | None) -> list[tuple[str, int]]: ...
    def get(self, word: str) -> int: ...
    def __len__(self) -> int: ...
    def equals(self, other: WordCounts) -> bool: ...
    def merged(self, other: WordCounts) -> WordCounts: ...
    def without_longer(self, most: int) -> tuple[WordCounts, int, int]: ...
    def train(
        self,
        target: dict[str, Any],
        algorithm: str,
        options: dict[str, Any],
        threads: int | None,
        observer: Callable[..., object] | None,
    ) -> Trained: ...

@final
class Counted:
    @property
    def words(self) -> WordCounts: ...
    @property
    def texts(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def replaced(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def undercount(self) -> int: ...

@final
class Trained:
    @property
    def tokens(self) -> list[str]: ...
    @property
    def counts(self) -> list[int]: ...
    @property
    def unknown(self) -> int: ...
    @property
    def pieces(self) -> list[tuple[int, list[int]]]: ...
    @property
    def stop(self) -> str: ...
    @property
    def least_size(self) -> int: ...
    @property
    def threshold(self) -> int | None: ...
    @property
    def dropped_chars(self) -> list[str]: ...
    @property
    def dropped_shares(self) -> tuple[int, int, int, int]: ...
    @property
    def excluded(self) -> tuple[int, int]: ...

@final
class Reporter:
    def __new__(cls, tokenizer: Tokenizer, threads: int | None) -> Reporter: ...
    def add(self, texts: list[Any], first: int) -> None: ...
    def sums(self) -> ReportSums: ...

@final
class ReportSums:
    @property
    def texts(self) -> int: ...
    @property
    def chars(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def words(self) -> int: ...
    @property
    def word_chars(self) -> int: ...
    @property
    def tokens(self) -> int: ...
    @property
    def unk_words(self) -> int: ...
    @property
    def unk_chars(self) -> int: ...
    @property
    def words_by_tokens(self) -> list[tuple[int, int]]: ...
    @property
    def texts_by_tokens(self) -> list[tuple[int, int]]: ...
    @property
    def used(self) -> list[tuple[int, int]]: ...

# Pre-training data: wordpiece_bert.pretraining checks arguments, and wraps these.

def keyed_draws(seed: int, stream: int, epoch: int, high: int, low: int, count: int) -> npt.NDArray[np.uint64]: ...
def epoch_order(n: int, seed: int, epoch: int, start: int, count: int) -> npt.NDArray[np.int64]: ...
def text_document_id(text: str) -> int: ...

@final
class MaskingRules:
    def __new__(
        cls,
        tokenizer: Tokenizer,
        special_ids: Sequence[int],
        mask_id: int,
        *,
        probability: float,
        unit: str,
        max_predictions: int | None,
        masked: float,
        random: float,
        span_probability: float,
        max_span_length: int,
    ) -> Self: ...
    @property
    def size(self) -> int: ...
    # Random choices depend on `seed`, `epoch`, `high` (0 unless masks are static) and the number of each row.
    def apply(
        self,
        input_ids: npt.NDArray[np.int64],
        row_offsets: npt.NDArray[np.int64],
        rows: npt.NDArray[np.uint64],
        seed: int,
        epoch: int,
        high: int,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

# The arrays of one pass and shard of an example folder, usually memory maps: `masks` is (masked_offsets,
# masked_positions, masked_ids), `sequences` is (sequence_offsets, sequence_lengths). With static masks input_ids
# is what the model sees, and masked_ids is what it is to predict.
@final
class ExampleShard:
    def __new__(
        cls,
        input_ids: npt.NDArray[Any],
        row_offsets: npt.NDArray[np.int64],
        *,
        second_starts: npt.NDArray[Any] | None = None,
        pair_labels: npt.NDArray[np.uint8] | None = None,
        masks: tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]] | None = None,
        sequences: tuple[npt.NDArray[np.int64], npt.NDArray[Any]] | None = None,
    ) -> Self: ...

# All shards as one list of rows. batch() returns input_ids, token_type_ids, attention_mask (bool [B, 1, S, S] of packed
# rows, absent with flatten), labels (when masked), pair_labels (empty if there are none) and, of packed rows and with
# flatten, position_ids, cu_seqlens (int32) and max_seqlen (int).
@final
class ExampleReader:
    def __new__(cls, row_counts: Sequence[int], load: Callable[[int], ExampleShard], pad_id: int) -> Self: ...
    def __len__(self) -> int: ...
    def batch(
        self,
        rows: npt.NDArray[np.int64],
        *,
        length: int | None,
        multiple_of: int,
        flatten: bool,
        masking: MaskingRules | None,
        seed: int,
        epoch: int,
    ) -> dict[str, Any]: ...
    def lengths(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...

# Sentences of a line (sentences="split"), and longest-pack-first: the sequences of each row as placed.
def split_sentences(line: str, abbreviations: Sequence[str] | None) -> list[str]: ...
def pack_sequences(lengths: Sequence[int], room: int, max_sequences: int | None) -> list[list[int]]: ...

# The arrays of a token store. add() and finish() return what the open shard gets, and each one after it: ids,
# sentence_offsets and document_offsets without the first, document_ids, and next: the position after the shard if it is
# complete (input, documents, counts), from which another builder resumes. Blocks of a Parquet column know no file
# number: pass input_index= (in the list of this run) and ids= if there is an id column; text_document_id() makes
# numbers of texts. For JSON lines with an id field, give TextReader two fields and second_is_id=True.
# documents="value" is for fields and columns.
@final
class TokenStoreBuilder:
    def __new__(
        cls,
        tokenizer: Tokenizer,
        *,
        file_numbers: Sequence[int],
        documents: str,
        split: bool,
        abbreviations: Sequence[str] | None,
        dtype: str | None,
        shard_tokens: int,
        threads: object,
    ) -> Self: ...
    @property
    def dtype(self) -> str: ...
    def resume(self, position: dict[str, Any]) -> None: ...
    @property
    def counts(self) -> dict[str, int]: ...
    def add(
        self, block: TextBlock, *, input_index: int | None = None, ids: npt.NDArray[np.uint64] | None = None
    ) -> list[dict[str, Any]]: ...
    def finish(self) -> list[dict[str, Any]]: ...

# The rows of one pass over one shard of a store, in blocks whose bounds do not depend on `threads`. `packing` is
# (length of packed rows, window, most sequences in a row). With `masking` masks are static. counts: short_targets,
# lone_sentences, rows_dropped, tokens_cut, truncated, sentences_divided, candidates, masked, random, kept, capped.
@final
class ExampleBuilder:
    def __new__(
        cls,
        ids: npt.NDArray[Any],
        sentence_offsets: npt.NDArray[np.int64],
        document_offsets: npt.NDArray[np.int64],
        document_ids: npt.NDArray[np.uint64],
        *,
        objective: str,
        max_length: int,
        short_seq_prob: float,
        min_sentences: int,
        seed: int,
        pass_number: int,
        cls_id: int,
        sep_id: int,
        packing: tuple[int, int, int | None] | None,
        masking: MaskingRules | None,
        threads: object,
    ) -> Self: ...
    def next_block(self) -> ExampleBlock | None: ...
    @property
    def counts(self) -> dict[str, int]: ...

# Some rows. arrays(): input_ids int32, row_offsets int64, token_type_ids int8, second_starts uint32, document_ids and
# ordinals uint64 (the identity of each row); for pairs pair_labels int8; with static masks labels int32 (dense, -100);
# packed: position_ids int32, sequence_offsets int64, cu_seqlens int32 (those of row i from sequence_offsets[i] + i to
# sequence_offsets[i + 1] + i + 1).
# stored(): the arrays of an example folder, offsets without the first.
@final
class ExampleBlock:
    def __len__(self) -> int: ...
    @property
    def sequences(self) -> int: ...
    def lengths(self) -> npt.NDArray[np.int64]: ...
    def pair_labels(self) -> npt.NDArray[np.uint8]: ...
    def arrays(self) -> dict[str, npt.NDArray[Any]]: ...
    def stored(self, *, narrow_ids: bool, narrow_places: bool) -> dict[str, npt.NDArray[Any]]: ...
    def rest(self, first: int) -> ExampleBlock: ...

# Encoders of blocks in order; after an error or Ctrl-C they refuse further calls.
@final
class MdsEncoder:
    def __new__(
        cls, *, narrow_ids: bool, pair_label: str | None, masks: bool, packed: bool, size_limit: int
    ) -> Self: ...
    # The number of samples and the content, in pieces, of the shards that have become complete, and of the last one;
    # index.json for names, samples and sizes.
    def encode(self, block: ExampleBlock) -> list[tuple[int, list[npt.NDArray[np.uint8]]]]: ...
    def finish(self) -> tuple[int, list[npt.NDArray[np.uint8]]] | None: ...
    def index(self, shards: list[tuple[str, int, int]]) -> str: ...

@final
class TfrecordEncoder:
    def __new__(cls, length: int, max_predictions: int) -> Self: ...
    def encode(self, block: ExampleBlock) -> npt.NDArray[np.uint8]: ...
