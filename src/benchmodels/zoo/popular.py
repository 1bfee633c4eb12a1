"""Well-known models of the Hugging Face hub: class, task, and the sizes in which their configurations differ from the defaults.

Written down by hand, so that they can be built where no hub is reachable. A row holds models of one class and size; a model may
have other weights, labels and words than the first of its row, and then has a separate row. A module and not a data file:
interpreters that are measured get benchmodels as source files.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, NamedTuple, Tuple

Sizes = Dict[str, Any]


class PopularModel(NamedTuple):
    """`task`: as the hub calls it. `takes`: text, vision, audio or multimodal. `kind`: its class in transformers.

    `sizes`: values of its configuration other than the defaults.
    """

    id: str
    task: str
    takes: str
    kind: str
    sizes: Sizes


def popular_models() -> Iterator[PopularModel]:
    """In the order of the table."""
    for takes, rows in TABLE.items():
        for kind, task, sizes, names in rows:
            for name in names.split():
                yield PopularModel(name, task, takes, kind, sizes)


def _encoder(width: int, layers: int, heads: int, inner: int = 0, **others: Any) -> Sizes:
    """Sizes under the names of BERT and its like."""
    inner = inner or 4 * width
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**sizes, "intermediate_size": inner, **others}


def _decoder(width: int, layers: int, heads: int, groups: int, inner: int, words: int, **others: Any) -> Sizes:
    """Sizes under the names of Llama and its like. `groups`: heads of keys and values."""
    return _encoder(width, layers, heads, inner, num_key_value_heads=groups, vocab_size=words, **others)


def _t5(width: int, layers: int, heads: int, inner: int, **others: Any) -> Sizes:
    return {"d_model": width, "num_layers": layers, "num_heads": heads, "d_ff": inner, **others}


def _pair(width: int, layers: int, heads: int, inner: int, **others: Any) -> Sizes:
    """An encoder and a decoder of the same sizes, under the names of BART."""
    sides = ("encoder", "decoder")
    sizes = {
        f"{side}_{name}": n
        for side in sides
        for name, n in zip(("layers", "attention_heads", "ffn_dim"), (layers, heads, inner))
    }
    return {"d_model": width, **sizes, **others}


LARGE = _encoder(1024, 24, 16)
MINI_6, MINI_12 = _encoder(384, 6, 12), _encoder(384, 12, 12)
CASED, CHINESE, MULTI = {"vocab_size": 28996}, {"vocab_size": 21128}, {"vocab_size": 119547}
ROBERTA: Sizes = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
ROBERTA_6: Sizes = {**ROBERTA, "num_hidden_layers": 6}
ROBERTA_LARGE: Sizes = {**ROBERTA, **LARGE}
CAMEMBERT: Sizes = {**ROBERTA, "vocab_size": 32005}
XLM_R: Sizes = {**ROBERTA, "vocab_size": 250002}
XLM_R_LARGE: Sizes = {**XLM_R, **LARGE}
XLM_R_LONG: Sizes = {**XLM_R_LARGE, "max_position_embeddings": 8194}
MPNET: Sizes = {"max_position_embeddings": 514}
ALBERT = _encoder(768, 12, 12)
ELECTRA = _encoder(768, 12, 12, embedding_size=768)
DEBERTA: Sizes = {
    "relative_attention": True,
    "pos_att_type": ["c2p", "p2c"],
    "position_biased_input": False,
    "type_vocab_size": 0,
}
DEBERTA_3: Sizes = {
    **DEBERTA,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "vocab_size": 128100,
}
DEBERTA_3_LARGE: Sizes = {**DEBERTA_3, **LARGE}
M_DEBERTA: Sizes = {**DEBERTA_3, "vocab_size": 251000}
ESM: Sizes = {
    "vocab_size": 33,
    "pad_token_id": 1,
    "mask_token_id": 32,
    "position_embedding_type": "rotary",
    "token_dropout": True,
    "max_position_embeddings": 1026,
    "emb_layer_norm_before": False,
}
GPT2_M, GPT2_L, GPT2_XL = (
    {"n_embd": w, "n_layer": n, "n_head": h} for w, n, h in ((1024, 24, 16), (1280, 36, 20), (1600, 48, 25))
)
GATED: Sizes = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
FLAN_S, FLAN_B = _t5(512, 8, 6, 1024, **GATED), _t5(768, 12, 12, 2048, **GATED)
FLAN_L, FLAN_XL = _t5(1024, 24, 16, 2816, **GATED), _t5(2048, 24, 32, 5120, **GATED)
T5_B, T5_L = _t5(768, 12, 12, 3072), _t5(1024, 24, 16, 4096)
MT5: Sizes = {"vocab_size": 250112}
BART_B = _pair(768, 6, 12, 3072)
MBART: Sizes = {"vocab_size": 250054}
MARIAN = _pair(512, 6, 8, 2048)
LLAMA_3_1 = _decoder(4096, 32, 32, 8, 14336, 128256)
LLAMA_3_2_1B = _decoder(2048, 16, 32, 8, 8192, 128256, head_dim=64, tie_word_embeddings=True)
LLAMA_3_2_3B = _decoder(3072, 28, 24, 8, 8192, 128256, head_dim=128, tie_word_embeddings=True)
QWEN_05B = _decoder(896, 24, 14, 2, 4864, 151936, tie_word_embeddings=True)
QWEN_15B = _decoder(1536, 28, 12, 2, 8960, 151936, tie_word_embeddings=True)
QWEN_3B = _decoder(2048, 36, 16, 2, 11008, 151936, tie_word_embeddings=True)
QWEN_7B = _decoder(3584, 28, 28, 4, 18944, 152064)
QWEN3_06B = _decoder(1024, 28, 16, 8, 3072, 151936, head_dim=128, tie_word_embeddings=True)
MISTRAL_03 = _decoder(4096, 32, 32, 8, 14336, 32768, sliding_window=None)
IMAGENET: Sizes = {"num_labels": 1000}
VIT_L: Sizes = {**LARGE, **IMAGENET}
SWIN_B: Sizes = {"embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}
SWIN_L: Sizes = {"embed_dim": 192, "depths": [2, 2, 18, 2], "num_heads": [6, 12, 24, 48]}
BEIT: Sizes = {"use_relative_position_bias": True}
MIT: Sizes = {"hidden_sizes": [64, 128, 320, 512]}
SEGFORMER_DEPTHS = {2: [3, 4, 6, 3], 3: [3, 4, 18, 3], 4: [3, 8, 27, 3], 5: [3, 6, 40, 3]}
CONVNEXT_B: Sizes = {"hidden_sizes": [128, 256, 512, 1024], "depths": [3, 3, 27, 3]}
CONVNEXT_L: Sizes = {"hidden_sizes": [192, 384, 768, 1536], "depths": [3, 3, 27, 3]}
BASIC: Sizes = {"layer_type": "basic", "hidden_sizes": [64, 128, 256, 512]}
CLIP_L_VISION = _encoder(1024, 24, 16, patch_size=14, projection_dim=768)
CLIP_L_TEXT = _encoder(768, 12, 12, projection_dim=768)
CLIP_L: Sizes = {"vision_config": CLIP_L_VISION, "text_config": CLIP_L_TEXT, "projection_dim": 768}
STABLE: Sizes = {"feat_extract_norm": "layer", "do_stable_layer_norm": True}
XLSR: Sizes = {**LARGE, **STABLE, "conv_bias": True}
WHISPER_S, WHISPER_M = _pair(768, 12, 12, 3072), _pair(1024, 24, 16, 4096)
WHISPER_L = _pair(1280, 32, 20, 5120)
WHISPER_L3: Sizes = {**WHISPER_L, "num_mel_bins": 128, "vocab_size": 51866}
ENGLISH: Sizes = {"vocab_size": 51864}  # of whisper

# fmt: off
Rows = Tuple[Tuple[str, str, Sizes, str], ...]  # class, task, sizes, names
TEXT: Rows = (
    # Encoders
    ("BertForMaskedLM", "fill-mask", {}, "google-bert/bert-base-uncased microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"),
    ("BertForMaskedLM", "fill-mask", CASED, "google-bert/bert-base-cased emilyalsentzer/Bio_ClinicalBERT dmis-lab/biobert-v1.1"),
    ("BertForMaskedLM", "fill-mask", MULTI, "google-bert/bert-base-multilingual-cased DeepPavlov/rubert-base-cased"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 105879}, "google-bert/bert-base-multilingual-uncased"),
    ("BertForMaskedLM", "fill-mask", CHINESE, "google-bert/bert-base-chinese hfl/chinese-bert-wwm-ext hfl/chinese-roberta-wwm-ext"),
    ("BertForMaskedLM", "fill-mask", {**CHINESE, **LARGE}, "hfl/chinese-roberta-wwm-ext-large"),
    ("BertForMaskedLM", "fill-mask", LARGE, "google-bert/bert-large-uncased google-bert/bert-large-uncased-whole-word-masking"),
    ("BertForMaskedLM", "fill-mask", {**LARGE, **CASED}, "google-bert/bert-large-cased google-bert/bert-large-cased-whole-word-masking"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 31102}, "dbmdz/bert-base-german-cased"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 32000}, "dbmdz/bert-base-turkish-cased tohoku-nlp/bert-base-japanese asafaya/bert-base-arabic"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 29794}, "neuralmind/bert-base-portuguese-cased"),
    ("BertForMaskedLM", "fill-mask", {**LARGE, "vocab_size": 29794}, "neuralmind/bert-large-portuguese-cased"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 31002}, "dccuchile/bert-base-spanish-wwm-cased dccuchile/bert-base-spanish-wwm-uncased"),
    ("BertForMaskedLM", "fill-mask", {"vocab_size": 31090}, "allenai/scibert_scivocab_uncased"),
    ("BertForMaskedLM", "fill-mask", _encoder(1024, 30, 16, vocab_size=30, max_position_embeddings=40000), "Rostlab/prot_bert Rostlab/prot_bert_bfd"),
    ("BertModel", "feature-extraction", {}, "nlpaueb/legal-bert-base-uncased facebook/contriever facebook/contriever-msmarco intfloat/e5-base-v2 "
     "thenlper/gte-base BAAI/bge-base-en-v1.5 Snowflake/snowflake-arctic-embed-m"),
    ("BertModel", "feature-extraction", LARGE, "intfloat/e5-large-v2 thenlper/gte-large BAAI/bge-large-en-v1.5 mixedbread-ai/mxbai-embed-large-v1 "
     "WhereIsAI/UAE-Large-V1 Snowflake/snowflake-arctic-embed-l"),
    ("BertModel", "feature-extraction", MINI_12, "intfloat/e5-small-v2 thenlper/gte-small BAAI/bge-small-en-v1.5 Snowflake/snowflake-arctic-embed-s"),
    ("BertModel", "feature-extraction", MINI_6, "Snowflake/snowflake-arctic-embed-xs"),
    ("BertModel", "feature-extraction", CHINESE, "BAAI/bge-base-zh-v1.5"),
    ("BertModel", "feature-extraction", {**CHINESE, **LARGE}, "BAAI/bge-large-zh-v1.5"),
    ("BertModel", "feature-extraction", _encoder(512, 4, 8, **CHINESE), "BAAI/bge-small-zh-v1.5"),
    ("BertModel", "feature-extraction", _encoder(128, 2, 2), "prajjwal1/bert-tiny google/bert_uncased_L-2_H-128_A-2"),
    ("BertModel", "feature-extraction", _encoder(256, 4, 4), "prajjwal1/bert-mini google/bert_uncased_L-4_H-256_A-4"),
    ("BertModel", "feature-extraction", _encoder(512, 4, 8), "prajjwal1/bert-small google/bert_uncased_L-4_H-512_A-8"),
    ("BertModel", "feature-extraction", _encoder(512, 8, 8), "prajjwal1/bert-medium google/bert_uncased_L-8_H-512_A-8"),
    ("BertModel", "feature-extraction", _encoder(312, 3, 12, 600, vocab_size=83828, max_position_embeddings=2048), "cointegrated/rubert-tiny2"),
    ("BertModel", "sentence-similarity", {"vocab_size": 501153}, "sentence-transformers/LaBSE setu4993/LaBSE"),
    ("BertModel", "sentence-similarity", MINI_6, "sentence-transformers/all-MiniLM-L6-v2 sentence-transformers/paraphrase-MiniLM-L6-v2 "
     "sentence-transformers/multi-qa-MiniLM-L6-cos-v1 sentence-transformers/multi-qa-MiniLM-L6-dot-v1 sentence-transformers/msmarco-MiniLM-L6-cos-v5"),
    ("BertModel", "sentence-similarity", MINI_12, "sentence-transformers/all-MiniLM-L12-v2 sentence-transformers/all-MiniLM-L12-v1 "
     "sentence-transformers/paraphrase-MiniLM-L12-v2"),
    ("BertModel", "sentence-similarity", _encoder(384, 3, 12), "sentence-transformers/paraphrase-MiniLM-L3-v2"),
    ("BertModel", "sentence-similarity", {**MINI_12, "vocab_size": 250037}, "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2 "
     "intfloat/multilingual-e5-small"),
    ("BertModel", "sentence-similarity", {}, "sentence-transformers/bert-base-nli-mean-tokens sentence-transformers/msmarco-bert-base-dot-v5 "
     "pritamdeka/S-PubMedBert-MS-MARCO"),
    ("BertModel", "sentence-similarity", LARGE, "sentence-transformers/bert-large-nli-stsb-mean-tokens"),
    ("BertForSequenceClassification", "text-classification", {"num_labels": 3}, "ProsusAI/finbert"),
    ("BertForSequenceClassification", "text-classification", {"num_labels": 6}, "unitary/toxic-bert bhadresh-savani/bert-base-uncased-emotion"),
    ("BertForSequenceClassification", "text-classification", {"vocab_size": 105879, "num_labels": 5}, "nlptown/bert-base-multilingual-uncased-sentiment"),
    ("BertForSequenceClassification", "text-classification", {"vocab_size": 32000}, "savasy/bert-base-turkish-sentiment-cased"),
    ("BertForSequenceClassification", "text-ranking", {**MINI_6, "num_labels": 1}, "cross-encoder/ms-marco-MiniLM-L-6-v2 cross-encoder/ms-marco-MiniLM-L6-v2"),
    ("BertForSequenceClassification", "text-ranking", {**MINI_12, "num_labels": 1}, "cross-encoder/ms-marco-MiniLM-L-12-v2 cross-encoder/ms-marco-MiniLM-L12-v2"),
    ("BertForSequenceClassification", "text-ranking", _encoder(384, 2, 12, num_labels=1), "cross-encoder/ms-marco-MiniLM-L-2-v2"),
    ("BertForSequenceClassification", "text-ranking", _encoder(384, 4, 12, num_labels=1), "cross-encoder/ms-marco-MiniLM-L-4-v2"),
    ("BertForSequenceClassification", "text-ranking", _encoder(128, 2, 2, num_labels=1), "cross-encoder/ms-marco-TinyBERT-L-2-v2"),
    ("BertForTokenClassification", "token-classification", {**CASED, "num_labels": 9}, "dslim/bert-base-NER"),
    ("BertForTokenClassification", "token-classification", {**LARGE, **CASED, "num_labels": 9}, "dslim/bert-large-NER dbmdz/bert-large-cased-finetuned-conll03-english"),
    ("BertForTokenClassification", "token-classification", {**MULTI, "num_labels": 9}, "Davlan/bert-base-multilingual-cased-ner-hrl Babelscape/wikineural-multilingual-ner"),
    ("BertForQuestionAnswering", "question-answering", LARGE, "google-bert/bert-large-uncased-whole-word-masking-finetuned-squad"),
    ("RobertaForMaskedLM", "fill-mask", ROBERTA, "FacebookAI/roberta-base microsoft/codebert-base-mlm microsoft/graphcodebert-base allenai/biomed_roberta_base"),
    ("RobertaForMaskedLM", "fill-mask", ROBERTA_LARGE, "FacebookAI/roberta-large"),
    ("RobertaForMaskedLM", "fill-mask", ROBERTA_6, "distilbert/distilroberta-base"),
    ("RobertaForMaskedLM", "fill-mask", {**ROBERTA, "vocab_size": 64001, "max_position_embeddings": 130}, "vinai/bertweet-base"),
    ("RobertaForMaskedLM", "fill-mask", {**ROBERTA, "vocab_size": 64001, "max_position_embeddings": 258}, "vinai/phobert-base"),
    ("RobertaModel", "feature-extraction", ROBERTA, "microsoft/codebert-base"),
    ("RobertaModel", "sentence-similarity", ROBERTA, "sentence-transformers/stsb-roberta-base-v2 sentence-transformers/nli-roberta-base-v2"),
    ("RobertaModel", "sentence-similarity", ROBERTA_6, "sentence-transformers/all-distilroberta-v1 sentence-transformers/paraphrase-distilroberta-base-v2"),
    ("RobertaModel", "sentence-similarity", ROBERTA_LARGE, "sentence-transformers/all-roberta-large-v1 sentence-transformers/stsb-roberta-large"),
    ("RobertaForSequenceClassification", "text-classification", {**ROBERTA, "num_labels": 3}, "cardiffnlp/twitter-roberta-base-sentiment "
     "cardiffnlp/twitter-roberta-base-sentiment-latest"),
    ("RobertaForSequenceClassification", "text-classification", {**ROBERTA, "num_labels": 4}, "cardiffnlp/twitter-roberta-base-emotion"),
    ("RobertaForSequenceClassification", "text-classification", ROBERTA, "cardiffnlp/twitter-roberta-base-irony cardiffnlp/twitter-roberta-base-offensive "
     "openai-community/roberta-base-openai-detector s-nlp/roberta_toxicity_classifier"),
    ("RobertaForSequenceClassification", "text-classification", {**ROBERTA, "num_labels": 28}, "SamLowe/roberta-base-go_emotions"),
    ("RobertaForSequenceClassification", "text-classification", {**ROBERTA_6, "num_labels": 7}, "j-hartmann/emotion-english-distilroberta-base"),
    ("RobertaForSequenceClassification", "text-classification", {**ROBERTA_6, "num_labels": 3}, "mrm8488/distilroberta-finetuned-financial-news-sentiment-analysis"),
    ("RobertaForSequenceClassification", "text-classification", ROBERTA_LARGE, "siebert/sentiment-roberta-large-english"),
    ("RobertaForSequenceClassification", "zero-shot-classification", {**ROBERTA_LARGE, "num_labels": 3}, "FacebookAI/roberta-large-mnli"),
    ("RobertaForSequenceClassification", "zero-shot-classification", {**ROBERTA, "num_labels": 3}, "cross-encoder/nli-roberta-base"),
    ("RobertaForSequenceClassification", "zero-shot-classification", {**ROBERTA_6, "num_labels": 3}, "cross-encoder/nli-distilroberta-base"),
    ("RobertaForSequenceClassification", "text-ranking", {**ROBERTA, "num_labels": 1}, "cross-encoder/stsb-roberta-base"),
    ("RobertaForSequenceClassification", "text-ranking", {**ROBERTA_LARGE, "num_labels": 1}, "cross-encoder/stsb-roberta-large"),
    ("RobertaForTokenClassification", "token-classification", {**ROBERTA_LARGE, "num_labels": 5}, "Jean-Baptiste/roberta-large-ner-english"),
    ("RobertaForQuestionAnswering", "question-answering", ROBERTA, "deepset/roberta-base-squad2"),
    ("RobertaForQuestionAnswering", "question-answering", ROBERTA_6, "deepset/tinyroberta-squad2"),
    ("RobertaForQuestionAnswering", "question-answering", ROBERTA_LARGE, "deepset/roberta-large-squad2"),
    ("CamembertForMaskedLM", "fill-mask", CAMEMBERT, "almanach/camembert-base"),
    ("CamembertForMaskedLM", "fill-mask", {**CAMEMBERT, **LARGE}, "almanach/camembert-large"),
    ("CamembertModel", "sentence-similarity", CAMEMBERT, "dangvantuan/sentence-camembert-base"),
    ("CamembertModel", "sentence-similarity", {**CAMEMBERT, **LARGE}, "dangvantuan/sentence-camembert-large"),
    ("CamembertForTokenClassification", "token-classification", {**CAMEMBERT, "num_labels": 5}, "Jean-Baptiste/camembert-ner"),
    ("XLMRobertaForMaskedLM", "fill-mask", XLM_R, "FacebookAI/xlm-roberta-base cardiffnlp/twitter-xlm-roberta-base"),
    ("XLMRobertaForMaskedLM", "fill-mask", XLM_R_LARGE, "FacebookAI/xlm-roberta-large"),
    ("XLMRobertaModel", "sentence-similarity", XLM_R, "intfloat/multilingual-e5-base sentence-transformers/paraphrase-multilingual-mpnet-base-v2 "
     "sentence-transformers/paraphrase-xlm-r-multilingual-v1 sentence-transformers/stsb-xlm-r-multilingual"),
    ("XLMRobertaModel", "sentence-similarity", XLM_R_LARGE, "intfloat/multilingual-e5-large intfloat/multilingual-e5-large-instruct"),
    ("XLMRobertaModel", "sentence-similarity", XLM_R_LONG, "BAAI/bge-m3"),
    ("XLMRobertaForSequenceClassification", "text-classification", {**XLM_R, "num_labels": 3}, "cardiffnlp/twitter-xlm-roberta-base-sentiment"),
    ("XLMRobertaForSequenceClassification", "text-classification", {**XLM_R, "num_labels": 20}, "papluca/xlm-roberta-base-language-detection"),
    ("XLMRobertaForSequenceClassification", "text-ranking", {**XLM_R, "num_labels": 1}, "BAAI/bge-reranker-base"),
    ("XLMRobertaForSequenceClassification", "text-ranking", {**XLM_R_LARGE, "num_labels": 1}, "BAAI/bge-reranker-large"),
    ("XLMRobertaForSequenceClassification", "text-ranking", {**XLM_R_LONG, "num_labels": 1}, "BAAI/bge-reranker-v2-m3"),
    ("XLMRobertaForSequenceClassification", "zero-shot-classification", {**XLM_R_LARGE, "num_labels": 3}, "joeddav/xlm-roberta-large-xnli"),
    ("XLMRobertaForTokenClassification", "token-classification", {**XLM_R_LARGE, "num_labels": 8}, "FacebookAI/xlm-roberta-large-finetuned-conll03-english"),
    ("XLMRobertaForTokenClassification", "token-classification", {**XLM_R, "num_labels": 9}, "Davlan/xlm-roberta-base-ner-hrl"),
    ("XLMRobertaForQuestionAnswering", "question-answering", XLM_R, "deepset/xlm-roberta-base-squad2"),
    ("XLMRobertaForQuestionAnswering", "question-answering", XLM_R_LARGE, "deepset/xlm-roberta-large-squad2"),
    ("DistilBertForMaskedLM", "fill-mask", {}, "distilbert/distilbert-base-uncased"),
    ("DistilBertForMaskedLM", "fill-mask", CASED, "distilbert/distilbert-base-cased"),
    ("DistilBertForMaskedLM", "fill-mask", MULTI, "distilbert/distilbert-base-multilingual-cased"),
    ("DistilBertForSequenceClassification", "text-classification", {}, "distilbert/distilbert-base-uncased-finetuned-sst-2-english"),
    ("DistilBertForSequenceClassification", "text-classification", {"num_labels": 6}, "bhadresh-savani/distilbert-base-uncased-emotion"),
    ("DistilBertForSequenceClassification", "text-classification", {**MULTI, "num_labels": 3}, "lxyuan/distilbert-base-multilingual-cased-sentiments-student"),
    ("DistilBertForSequenceClassification", "zero-shot-classification", {"num_labels": 3}, "typeform/distilbert-base-uncased-mnli"),
    ("DistilBertForQuestionAnswering", "question-answering", {}, "distilbert/distilbert-base-uncased-distilled-squad"),
    ("DistilBertForQuestionAnswering", "question-answering", CASED, "distilbert/distilbert-base-cased-distilled-squad"),
    ("DistilBertModel", "sentence-similarity", {}, "sentence-transformers/msmarco-distilbert-base-v4 sentence-transformers/msmarco-distilbert-base-tas-b "
     "sentence-transformers/multi-qa-distilbert-cos-v1 sentence-transformers/distilbert-base-nli-mean-tokens"),
    ("DistilBertModel", "sentence-similarity", MULTI, "sentence-transformers/distiluse-base-multilingual-cased-v1 "
     "sentence-transformers/distiluse-base-multilingual-cased-v2 sentence-transformers/quora-distilbert-multilingual"),
    ("AlbertForMaskedLM", "fill-mask", ALBERT, "albert/albert-base-v2 albert/albert-base-v1"),
    ("AlbertForMaskedLM", "fill-mask", LARGE, "albert/albert-large-v2"),
    ("AlbertForMaskedLM", "fill-mask", {}, "albert/albert-xxlarge-v2"),
    ("AlbertForQuestionAnswering", "question-answering", ALBERT, "twmkn9/albert-base-v2-squad2"),
    ("AlbertModel", "sentence-similarity", _encoder(768, 6, 12), "sentence-transformers/paraphrase-albert-small-v2"),
    ("ElectraForPreTraining", "feature-extraction", {}, "google/electra-small-discriminator"),
    ("ElectraForPreTraining", "feature-extraction", ELECTRA, "google/electra-base-discriminator"),
    ("ElectraForPreTraining", "feature-extraction", {**LARGE, "embedding_size": 1024}, "google/electra-large-discriminator"),
    ("ElectraForMaskedLM", "fill-mask", {"embedding_size": 768}, "google/electra-base-generator"),
    ("ElectraForQuestionAnswering", "question-answering", ELECTRA, "deepset/electra-base-squad2"),
    ("DebertaForMaskedLM", "fill-mask", DEBERTA, "microsoft/deberta-base"),
    ("DebertaForMaskedLM", "fill-mask", {**DEBERTA, **LARGE}, "microsoft/deberta-large"),
    ("DebertaV2ForMaskedLM", "fill-mask", _encoder(384, 12, 6, **DEBERTA_3), "microsoft/deberta-v3-xsmall"),
    ("DebertaV2ForMaskedLM", "fill-mask", _encoder(768, 6, 12, **DEBERTA_3), "microsoft/deberta-v3-small"),
    ("DebertaV2ForMaskedLM", "fill-mask", _encoder(768, 12, 12, **DEBERTA_3), "microsoft/deberta-v3-base"),
    ("DebertaV2ForMaskedLM", "fill-mask", DEBERTA_3_LARGE, "microsoft/deberta-v3-large"),
    ("DebertaV2ForMaskedLM", "fill-mask", _encoder(768, 12, 12, **M_DEBERTA), "microsoft/mdeberta-v3-base"),
    ("DebertaV2ForSequenceClassification", "zero-shot-classification", _encoder(384, 12, 6, **DEBERTA_3, num_labels=3), "cross-encoder/nli-deberta-v3-xsmall"),
    ("DebertaV2ForSequenceClassification", "zero-shot-classification", _encoder(768, 6, 12, **DEBERTA_3, num_labels=3), "cross-encoder/nli-deberta-v3-small"),
    ("DebertaV2ForSequenceClassification", "zero-shot-classification", _encoder(768, 12, 12, **DEBERTA_3, num_labels=3), "cross-encoder/nli-deberta-v3-base "
     "MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"),
    ("DebertaV2ForSequenceClassification", "zero-shot-classification", {**DEBERTA_3_LARGE, "num_labels": 3}, "cross-encoder/nli-deberta-v3-large "
     "MoritzLaurer/DeBERTa-v3-large-mnli-fever-anli-ling-wanli"),
    ("DebertaV2ForSequenceClassification", "zero-shot-classification", _encoder(768, 12, 12, **M_DEBERTA, num_labels=3), "MoritzLaurer/mDeBERTa-v3-base-mnli-xnli"),
    ("DebertaV2ForSequenceClassification", "text-classification", _encoder(768, 12, 12, **DEBERTA_3), "protectai/deberta-v3-base-prompt-injection-v2"),
    ("DebertaV2ForQuestionAnswering", "question-answering", _encoder(768, 12, 12, **DEBERTA_3), "deepset/deberta-v3-base-squad2"),
    ("DebertaV2ForQuestionAnswering", "question-answering", DEBERTA_3_LARGE, "deepset/deberta-v3-large-squad2"),
    ("MPNetForMaskedLM", "fill-mask", MPNET, "microsoft/mpnet-base"),
    ("MPNetModel", "sentence-similarity", MPNET, "sentence-transformers/all-mpnet-base-v2 sentence-transformers/all-mpnet-base-v1 "
     "sentence-transformers/multi-qa-mpnet-base-dot-v1 sentence-transformers/multi-qa-mpnet-base-cos-v1 sentence-transformers/paraphrase-mpnet-base-v2"),
    ("ModernBertForMaskedLM", "fill-mask", {}, "answerdotai/ModernBERT-base"),
    ("ModernBertForMaskedLM", "fill-mask", _encoder(1024, 28, 16, 2624), "answerdotai/ModernBERT-large"),
    ("MobileBertForPreTraining", "fill-mask", {}, "google/mobilebert-uncased"),
    ("SqueezeBertForMaskedLM", "fill-mask", {}, "squeezebert/squeezebert-uncased"),
    ("FNetForPreTraining", "fill-mask", {}, "google/fnet-base"),
    ("CanineModel", "feature-extraction", {}, "google/canine-s google/canine-c"),
    ("ConvBertModel", "feature-extraction", {}, "YituTech/conv-bert-base"),
    ("LongformerForMaskedLM", "fill-mask", {**ROBERTA, "max_position_embeddings": 4098}, "allenai/longformer-base-4096"),
    ("BigBirdForPreTraining", "fill-mask", {}, "google/bigbird-roberta-base"),
    ("XLNetLMHeadModel", "text-generation", {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072}, "xlnet/xlnet-base-cased"),
    ("XLNetLMHeadModel", "text-generation", {}, "xlnet/xlnet-large-cased"),
    ("EsmForMaskedLM", "fill-mask", _encoder(320, 6, 20, **ESM), "facebook/esm2_t6_8M_UR50D"),
    ("EsmForMaskedLM", "fill-mask", _encoder(480, 12, 20, **ESM), "facebook/esm2_t12_35M_UR50D"),
    ("EsmForMaskedLM", "fill-mask", _encoder(640, 30, 20, **ESM), "facebook/esm2_t30_150M_UR50D"),
    ("EsmForMaskedLM", "fill-mask", _encoder(1280, 33, 20, **ESM), "facebook/esm2_t33_650M_UR50D"),
    # Decoders
    ("GPT2LMHeadModel", "text-generation", {}, "openai-community/gpt2 microsoft/DialoGPT-small"),
    ("GPT2LMHeadModel", "text-generation", {"n_layer": 6}, "distilbert/distilgpt2"),
    ("GPT2LMHeadModel", "text-generation", GPT2_M, "openai-community/gpt2-medium microsoft/DialoGPT-medium"),
    ("GPT2LMHeadModel", "text-generation", GPT2_L, "openai-community/gpt2-large microsoft/DialoGPT-large"),
    ("GPT2LMHeadModel", "text-generation", GPT2_XL, "openai-community/gpt2-xl"),
    ("OpenAIGPTLMHeadModel", "text-generation", {}, "openai-community/openai-gpt"),
    ("GPTNeoForCausalLM", "text-generation", {"hidden_size": 768, "num_layers": 12, "num_heads": 12, "attention_types": [[["global", "local"], 6]]},
     "EleutherAI/gpt-neo-125m"),
    ("GPTNeoForCausalLM", "text-generation", {}, "EleutherAI/gpt-neo-1.3B"),
    ("GPTNeoForCausalLM", "text-generation", {"hidden_size": 2560, "num_layers": 32, "num_heads": 20, "attention_types": [[["global", "local"], 16]]},
     "EleutherAI/gpt-neo-2.7B"),
    ("GPTJForCausalLM", "text-generation", {}, "EleutherAI/gpt-j-6b"),
    ("GPTNeoXForCausalLM", "text-generation", {}, "EleutherAI/gpt-neox-20b"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(512, 6, 8, vocab_size=50304), "EleutherAI/pythia-70m"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(768, 12, 12, vocab_size=50304), "EleutherAI/pythia-160m"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(1024, 24, 16, vocab_size=50304), "EleutherAI/pythia-410m"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(2048, 16, 8, vocab_size=50304), "EleutherAI/pythia-1b"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(2048, 24, 16, vocab_size=50304), "EleutherAI/pythia-1.4b"),
    ("GPTNeoXForCausalLM", "text-generation", _encoder(2560, 32, 32, vocab_size=50304), "EleutherAI/pythia-2.8b"),
    ("OPTForCausalLM", "text-generation", {}, "facebook/opt-125m"),
    ("OPTForCausalLM", "text-generation", {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "ffn_dim": 4096, "word_embed_proj_dim": 512,
     "do_layer_norm_before": False}, "facebook/opt-350m"),
    ("OPTForCausalLM", "text-generation", {"hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 32, "ffn_dim": 8192, "word_embed_proj_dim": 2048},
     "facebook/opt-1.3b"),
    ("OPTForCausalLM", "text-generation", {"hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 10240, "word_embed_proj_dim": 2560},
     "facebook/opt-2.7b"),
    ("OPTForCausalLM", "text-generation", {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "ffn_dim": 16384, "word_embed_proj_dim": 4096},
     "facebook/opt-6.7b"),
    ("BloomForCausalLM", "text-generation", {"hidden_size": 1024, "n_layer": 24, "n_head": 16, "vocab_size": 250880}, "bigscience/bloom-560m bigscience/bloomz-560m"),
    ("BloomForCausalLM", "text-generation", {"hidden_size": 1536, "n_layer": 24, "n_head": 16, "vocab_size": 250880}, "bigscience/bloom-1b1"),
    ("BloomForCausalLM", "text-generation", {"hidden_size": 2048, "n_layer": 24, "n_head": 16, "vocab_size": 250880}, "bigscience/bloom-1b7"),
    ("BloomForCausalLM", "text-generation", {"hidden_size": 2560, "n_layer": 30, "n_head": 32, "vocab_size": 250880}, "bigscience/bloom-3b"),
    ("BloomForCausalLM", "text-generation", {"hidden_size": 4096, "n_layer": 30, "n_head": 32, "vocab_size": 250880}, "bigscience/bloom-7b1"),
    ("CodeGenForCausalLM", "text-generation", {"n_embd": 1024, "n_layer": 20, "n_head": 16, "rotary_dim": 32, "vocab_size": 51200},
     "Salesforce/codegen-350M-mono Salesforce/codegen-350M-multi Salesforce/codegen-350M-nl"),
    ("CodeGenForCausalLM", "text-generation", {"n_embd": 2560, "n_layer": 32, "n_head": 32, "rotary_dim": 64, "vocab_size": 51200},
     "Salesforce/codegen-2B-mono Salesforce/codegen-2B-multi"),
    ("GPTBigCodeForCausalLM", "text-generation", {"n_embd": 2048, "n_layer": 24, "n_head": 16, "n_inner": 8192, "n_positions": 8192, "vocab_size": 49152, "bos_token_id": 0, "eos_token_id": 0},
     "bigcode/starcoderbase-1b"),
    ("Starcoder2ForCausalLM", "text-generation", _decoder(3072, 30, 24, 2, 12288, 49152, bos_token_id=0, eos_token_id=0), "bigcode/starcoder2-3b"),
    ("LlamaForCausalLM", "text-generation", _decoder(2048, 22, 32, 4, 5632, 32000), "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
    ("LlamaForCausalLM", "text-generation", _decoder(4096, 32, 32, 32, 11008, 32000), "meta-llama/Llama-2-7b-hf meta-llama/Llama-2-7b-chat-hf huggyllama/llama-7b "
     "lmsys/vicuna-7b-v1.5"),
    ("LlamaForCausalLM", "text-generation", _decoder(5120, 40, 40, 40, 13824, 32000), "meta-llama/Llama-2-13b-hf huggyllama/llama-13b"),
    ("LlamaForCausalLM", "text-generation", LLAMA_3_1, "meta-llama/Meta-Llama-3-8B meta-llama/Meta-Llama-3-8B-Instruct meta-llama/Llama-3.1-8B "
     "meta-llama/Llama-3.1-8B-Instruct deepseek-ai/DeepSeek-R1-Distill-Llama-8B"),
    ("LlamaForCausalLM", "text-generation", LLAMA_3_2_1B, "meta-llama/Llama-3.2-1B meta-llama/Llama-3.2-1B-Instruct"),
    ("LlamaForCausalLM", "text-generation", LLAMA_3_2_3B, "meta-llama/Llama-3.2-3B meta-llama/Llama-3.2-3B-Instruct"),
    ("LlamaForCausalLM", "text-generation", _decoder(8192, 80, 64, 8, 28672, 128256), "meta-llama/Llama-3.1-70B-Instruct meta-llama/Llama-3.3-70B-Instruct"),
    ("LlamaForCausalLM", "text-generation", _decoder(576, 30, 9, 3, 1536, 49152, tie_word_embeddings=True), "HuggingFaceTB/SmolLM2-135M HuggingFaceTB/SmolLM2-135M-Instruct"),
    ("LlamaForCausalLM", "text-generation", _decoder(960, 32, 15, 5, 2560, 49152, tie_word_embeddings=True), "HuggingFaceTB/SmolLM2-360M HuggingFaceTB/SmolLM2-360M-Instruct"),
    ("LlamaForCausalLM", "text-generation", _decoder(2048, 24, 32, 32, 8192, 49152, tie_word_embeddings=True), "HuggingFaceTB/SmolLM2-1.7B HuggingFaceTB/SmolLM2-1.7B-Instruct"),
    ("LlamaForCausalLM", "text-generation", _decoder(2048, 24, 16, 16, 5504, 32256), "deepseek-ai/deepseek-coder-1.3b-base deepseek-ai/deepseek-coder-1.3b-instruct"),
    ("MistralForCausalLM", "text-generation", _decoder(4096, 32, 32, 8, 14336, 32000), "mistralai/Mistral-7B-v0.1 mistralai/Mistral-7B-Instruct-v0.1 HuggingFaceH4/zephyr-7b-beta"),
    ("MistralForCausalLM", "text-generation", MISTRAL_03, "mistralai/Mistral-7B-v0.3 mistralai/Mistral-7B-Instruct-v0.3"),
    ("MistralForCausalLM", "text-generation", _decoder(5120, 40, 32, 8, 14336, 131072, head_dim=128, sliding_window=None), "mistralai/Mistral-Nemo-Instruct-2407"),
    ("MixtralForCausalLM", "text-generation", {}, "mistralai/Mixtral-8x7B-v0.1 mistralai/Mixtral-8x7B-Instruct-v0.1"),
    ("Qwen2ForCausalLM", "text-generation", QWEN_05B, "Qwen/Qwen2.5-0.5B Qwen/Qwen2.5-0.5B-Instruct Qwen/Qwen2-0.5B Qwen/Qwen2.5-Coder-0.5B"),
    ("Qwen2ForCausalLM", "text-generation", QWEN_15B, "Qwen/Qwen2.5-1.5B Qwen/Qwen2.5-1.5B-Instruct Qwen/Qwen2-1.5B-Instruct Qwen/Qwen2.5-Coder-1.5B"),
    ("Qwen2ForCausalLM", "text-generation", QWEN_3B, "Qwen/Qwen2.5-3B Qwen/Qwen2.5-3B-Instruct"),
    ("Qwen2ForCausalLM", "text-generation", QWEN_7B, "Qwen/Qwen2.5-7B Qwen/Qwen2.5-7B-Instruct Qwen/Qwen2-7B-Instruct Qwen/Qwen2.5-Coder-7B-Instruct "
     "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"),
    ("Qwen2ForCausalLM", "text-generation", {**QWEN_15B, "tie_word_embeddings": False}, "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B"),
    ("Qwen2ForCausalLM", "text-generation", _decoder(5120, 48, 40, 8, 13824, 152064), "Qwen/Qwen2.5-14B-Instruct"),
    ("Qwen2ForCausalLM", "text-generation", _decoder(5120, 64, 40, 8, 27648, 152064), "Qwen/Qwen2.5-32B-Instruct Qwen/QwQ-32B"),
    ("Qwen3ForCausalLM", "text-generation", QWEN3_06B, "Qwen/Qwen3-0.6B Qwen/Qwen3-0.6B-Base"),
    ("Qwen3ForCausalLM", "text-generation", _decoder(2048, 28, 16, 8, 6144, 151936, head_dim=128, tie_word_embeddings=True), "Qwen/Qwen3-1.7B"),
    ("Qwen3ForCausalLM", "text-generation", _decoder(2560, 36, 32, 8, 9728, 151936, head_dim=128, tie_word_embeddings=True), "Qwen/Qwen3-4B Qwen/Qwen3-4B-Instruct-2507"),
    ("Qwen3ForCausalLM", "text-generation", _decoder(4096, 36, 32, 8, 12288, 151936, head_dim=128), "Qwen/Qwen3-8B"),
    ("Qwen3ForCausalLM", "text-generation", _decoder(5120, 40, 40, 8, 17408, 151936, head_dim=128), "Qwen/Qwen3-14B"),
    ("Qwen3ForCausalLM", "text-generation", _decoder(5120, 64, 64, 8, 25600, 151936, head_dim=128), "Qwen/Qwen3-32B"),
    ("PhiForCausalLM", "text-generation", _encoder(2560, 32, 32, vocab_size=51200), "microsoft/phi-2"),
    ("PhiForCausalLM", "text-generation", _encoder(2048, 24, 32, vocab_size=51200), "microsoft/phi-1 microsoft/phi-1_5"),
    ("Phi3ForCausalLM", "text-generation", _decoder(3072, 32, 32, 32, 8192, 32064), "microsoft/Phi-3-mini-4k-instruct"),
    ("Phi3ForCausalLM", "text-generation", _decoder(5120, 40, 40, 10, 17920, 100352, pad_token_id=100349), "microsoft/phi-4"),
    ("GemmaForCausalLM", "text-generation", _decoder(2048, 18, 8, 1, 16384, 256000, head_dim=256), "google/gemma-2b google/gemma-2b-it"),
    ("GemmaForCausalLM", "text-generation", _decoder(3072, 28, 16, 16, 24576, 256000, head_dim=256), "google/gemma-7b google/gemma-7b-it"),
    ("Gemma2ForCausalLM", "text-generation", _decoder(2304, 26, 8, 4, 9216, 256000, head_dim=256), "google/gemma-2-2b google/gemma-2-2b-it"),
    ("Gemma2ForCausalLM", "text-generation", _decoder(3584, 42, 16, 8, 14336, 256000, head_dim=256), "google/gemma-2-9b google/gemma-2-9b-it"),
    ("Gemma3ForCausalLM", "text-generation", _decoder(640, 18, 4, 1, 2048, 262144, head_dim=256), "google/gemma-3-270m google/gemma-3-270m-it"),
    ("Gemma3ForCausalLM", "text-generation", _decoder(1152, 26, 4, 1, 6912, 262144, head_dim=256), "google/gemma-3-1b-pt google/gemma-3-1b-it"),
    ("StableLmForCausalLM", "text-generation", _decoder(2048, 24, 32, 32, 5632, 100352, use_qkv_bias=True), "stabilityai/stablelm-2-1_6b"),
    ("OlmoForCausalLM", "text-generation", _decoder(2048, 16, 16, 16, 8192, 50304, tie_word_embeddings=True), "allenai/OLMo-1B-hf"),
    ("FalconForCausalLM", "text-generation", {}, "tiiuae/falcon-7b tiiuae/falcon-7b-instruct"),
    ("MptForCausalLM", "text-generation", {"d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432}, "mosaicml/mpt-7b mosaicml/mpt-7b-instruct"),
    ("MambaForCausalLM", "text-generation", {"hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280}, "state-spaces/mamba-130m-hf"),
    ("MambaForCausalLM", "text-generation", {"hidden_size": 1024, "num_hidden_layers": 48, "vocab_size": 50280}, "state-spaces/mamba-370m-hf"),
    ("MambaForCausalLM", "text-generation", {"hidden_size": 1536, "num_hidden_layers": 48, "vocab_size": 50280}, "state-spaces/mamba-790m-hf"),
    ("MambaForCausalLM", "text-generation", {"hidden_size": 2560, "num_hidden_layers": 64, "vocab_size": 50280}, "state-spaces/mamba-2.8b-hf"),
    # Both
    ("T5ForConditionalGeneration", "text2text-generation", {}, "google-t5/t5-small Unbabel/gec-t5_small"),
    ("T5ForConditionalGeneration", "text2text-generation", T5_B, "google-t5/t5-base mrm8488/t5-base-finetuned-common_gen Michau/t5-base-en-generate-headline "
     "ramsrigouthamg/t5_paraphraser valhalla/t5-base-squad"),
    ("T5ForConditionalGeneration", "text2text-generation", T5_L, "google-t5/t5-large"),
    ("T5ForConditionalGeneration", "text2text-generation", _t5(1024, 24, 32, 16384, d_kv=128), "google-t5/t5-3b"),
    ("T5ForConditionalGeneration", "text2text-generation", FLAN_S, "google/flan-t5-small google/t5-v1_1-small"),
    ("T5ForConditionalGeneration", "text2text-generation", FLAN_B, "google/flan-t5-base google/t5-v1_1-base"),
    ("T5ForConditionalGeneration", "text2text-generation", FLAN_L, "google/flan-t5-large google/t5-v1_1-large"),
    ("T5ForConditionalGeneration", "text2text-generation", FLAN_XL, "google/flan-t5-xl google/t5-v1_1-xl"),
    ("T5ForConditionalGeneration", "text2text-generation", _t5(1472, 12, 6, 3584, num_decoder_layers=4, vocab_size=384, **GATED), "google/byt5-small"),
    ("T5ForConditionalGeneration", "text2text-generation", _t5(1536, 18, 12, 3968, num_decoder_layers=6, vocab_size=384, **GATED), "google/byt5-base"),
    ("T5ForConditionalGeneration", "text2text-generation", {"vocab_size": 32100}, "Salesforce/codet5-small"),
    ("T5ForConditionalGeneration", "text2text-generation", {**T5_B, "vocab_size": 32100}, "Salesforce/codet5-base"),
    ("T5ForConditionalGeneration", "text2text-generation", {**T5_L, "vocab_size": 32100}, "Salesforce/codet5-large"),
    ("T5ForConditionalGeneration", "time-series-forecasting", _t5(256, 4, 4, 1024, vocab_size=4096), "amazon/chronos-t5-tiny"),
    ("T5ForConditionalGeneration", "time-series-forecasting", _t5(384, 4, 8, 1536, vocab_size=4096), "amazon/chronos-t5-mini"),
    ("T5ForConditionalGeneration", "time-series-forecasting", _t5(512, 6, 8, 2048, vocab_size=4096), "amazon/chronos-t5-small"),
    ("T5ForConditionalGeneration", "time-series-forecasting", {**T5_B, "vocab_size": 4096}, "amazon/chronos-t5-base"),
    ("MT5ForConditionalGeneration", "text2text-generation", {**FLAN_S, **MT5}, "google/mt5-small"),
    ("MT5ForConditionalGeneration", "text2text-generation", {**FLAN_B, **MT5}, "google/mt5-base csebuetnlp/mT5_multilingual_XLSum"),
    ("MT5ForConditionalGeneration", "text2text-generation", {**FLAN_L, **MT5}, "google/mt5-large"),
    ("BartForConditionalGeneration", "text2text-generation", BART_B, "facebook/bart-base"),
    ("BartForConditionalGeneration", "text2text-generation", {}, "facebook/bart-large"),
    ("BartForConditionalGeneration", "summarization", {"vocab_size": 50264}, "facebook/bart-large-cnn facebook/bart-large-xsum"),
    ("BartForConditionalGeneration", "summarization", {"vocab_size": 50264, "decoder_layers": 6}, "sshleifer/distilbart-cnn-12-6"),
    ("BartForSequenceClassification", "zero-shot-classification", {"num_labels": 3}, "facebook/bart-large-mnli"),
    ("BartForSequenceClassification", "zero-shot-classification", {"num_labels": 3, "decoder_layers": 1}, "valhalla/distilbart-mnli-12-1"),
    ("MBartForConditionalGeneration", "translation", MBART, "facebook/mbart-large-50 facebook/mbart-large-50-many-to-many-mmt facebook/mbart-large-50-one-to-many-mmt"),
    ("PegasusForConditionalGeneration", "summarization", _pair(1024, 16, 16, 4096, vocab_size=96103, max_position_embeddings=512), "google/pegasus-xsum"),
    ("PegasusForConditionalGeneration", "summarization", _pair(1024, 16, 16, 4096, vocab_size=96103), "google/pegasus-cnn_dailymail"),
    ("MarianMTModel", "translation", {**MARIAN, "vocab_size": 58101}, "Helsinki-NLP/opus-mt-en-de Helsinki-NLP/opus-mt-de-en"),
    ("MarianMTModel", "translation", {**MARIAN, "vocab_size": 59514, "pad_token_id": 59513}, "Helsinki-NLP/opus-mt-en-fr Helsinki-NLP/opus-mt-fr-en"),
    ("MarianMTModel", "translation", {**MARIAN, "vocab_size": 65001, "pad_token_id": 65000}, "Helsinki-NLP/opus-mt-en-es Helsinki-NLP/opus-mt-es-en "
     "Helsinki-NLP/opus-mt-en-zh Helsinki-NLP/opus-mt-zh-en"),
    ("MarianMTModel", "translation", {**MARIAN, "vocab_size": 62518, "pad_token_id": 62517}, "Helsinki-NLP/opus-mt-en-ru Helsinki-NLP/opus-mt-ru-en"),
    ("M2M100ForConditionalGeneration", "translation", {}, "facebook/m2m100_418M"),
    ("M2M100ForConditionalGeneration", "translation", _pair(1024, 24, 16, 8192), "facebook/m2m100_1.2B"),
    ("M2M100ForConditionalGeneration", "translation", {"vocab_size": 256206}, "facebook/nllb-200-distilled-600M"),
    ("M2M100ForConditionalGeneration", "translation", _pair(1024, 24, 16, 8192, vocab_size=256206), "facebook/nllb-200-distilled-1.3B"),
    ("BlenderbotForConditionalGeneration", "text2text-generation", {"d_model": 1280, "encoder_layers": 2, "decoder_layers": 12, "encoder_attention_heads": 32,
     "decoder_attention_heads": 32, "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "vocab_size": 8008}, "facebook/blenderbot-400M-distill"),
    ("LEDForConditionalGeneration", "text2text-generation", {**BART_B, "max_encoder_position_embeddings": 16384, "attention_window": [1024] * 6}, "allenai/led-base-16384"),
    ("ProphetNetForConditionalGeneration", "text2text-generation", {}, "microsoft/prophetnet-large-uncased"),
)
VISION: Rows = (
    ("ViTForImageClassification", "image-classification", IMAGENET, "google/vit-base-patch16-224 facebook/deit-base-patch16-224"),
    ("ViTForImageClassification", "image-classification", {**IMAGENET, "image_size": 384}, "google/vit-base-patch16-384"),
    ("ViTForImageClassification", "image-classification", {**IMAGENET, "image_size": 384, "patch_size": 32}, "google/vit-base-patch32-384"),
    ("ViTForImageClassification", "image-classification", VIT_L, "google/vit-large-patch16-224"),
    ("ViTForImageClassification", "image-classification", {**VIT_L, "image_size": 384}, "google/vit-large-patch16-384"),
    ("ViTForImageClassification", "image-classification", {**VIT_L, "image_size": 384, "patch_size": 32}, "google/vit-large-patch32-384"),
    ("ViTForImageClassification", "image-classification", _encoder(192, 12, 3, **IMAGENET), "facebook/deit-tiny-patch16-224"),
    ("ViTForImageClassification", "image-classification", _encoder(384, 12, 6, **IMAGENET), "facebook/deit-small-patch16-224"),
    ("ViTForImageClassification", "image-classification", {"num_labels": 2}, "Falconsai/nsfw_image_detection"),
    ("ViTForImageClassification", "image-classification", {"num_labels": 9}, "nateraw/vit-age-classifier"),
    ("ViTForImageClassification", "image-classification", {"num_labels": 7}, "trpakov/vit-face-expression"),
    ("ViTForImageClassification", "image-classification", {"num_labels": 10}, "nateraw/vit-base-patch16-224-cifar10"),
    ("ViTModel", "image-feature-extraction", {}, "google/vit-base-patch16-224-in21k facebook/dino-vitb16"),
    ("ViTModel", "image-feature-extraction", {"patch_size": 32}, "google/vit-base-patch32-224-in21k"),
    ("ViTModel", "image-feature-extraction", {"patch_size": 8}, "facebook/dino-vitb8"),
    ("ViTModel", "image-feature-extraction", _encoder(384, 12, 6), "facebook/dino-vits16"),
    ("ViTModel", "image-feature-extraction", _encoder(384, 12, 6, patch_size=8), "facebook/dino-vits8"),
    ("ViTModel", "image-feature-extraction", LARGE, "google/vit-large-patch16-224-in21k"),
    ("ViTModel", "image-feature-extraction", _encoder(1280, 32, 16, patch_size=14), "google/vit-huge-patch14-224-in21k"),
    ("ViTMAEForPreTraining", "image-feature-extraction", {}, "facebook/vit-mae-base"),
    ("ViTMAEForPreTraining", "image-feature-extraction", LARGE, "facebook/vit-mae-large"),
    ("DeiTForImageClassificationWithTeacher", "image-classification", IMAGENET, "facebook/deit-base-distilled-patch16-224"),
    ("DeiTForImageClassificationWithTeacher", "image-classification", _encoder(384, 12, 6, **IMAGENET), "facebook/deit-small-distilled-patch16-224"),
    ("DeiTForImageClassificationWithTeacher", "image-classification", _encoder(192, 12, 3, **IMAGENET), "facebook/deit-tiny-distilled-patch16-224"),
    ("BeitForImageClassification", "image-classification", {**BEIT, **IMAGENET}, "microsoft/beit-base-patch16-224"),
    ("BeitForImageClassification", "image-classification", {**BEIT, "num_labels": 21841}, "microsoft/beit-base-patch16-224-pt22k-ft22k"),
    ("BeitForImageClassification", "image-classification", {**BEIT, **VIT_L}, "microsoft/beit-large-patch16-224"),
    ("BeitForImageClassification", "image-classification", {**BEIT, **VIT_L, "image_size": 512}, "microsoft/beit-large-patch16-512"),
    ("Data2VecVisionForImageClassification", "image-classification", {**BEIT, **IMAGENET}, "facebook/data2vec-vision-base-ft1k"),
    ("SwinForImageClassification", "image-classification", IMAGENET, "microsoft/swin-tiny-patch4-window7-224"),
    ("SwinForImageClassification", "image-classification", {**IMAGENET, "depths": [2, 2, 18, 2]}, "microsoft/swin-small-patch4-window7-224"),
    ("SwinForImageClassification", "image-classification", {**IMAGENET, **SWIN_B}, "microsoft/swin-base-patch4-window7-224"),
    ("SwinForImageClassification", "image-classification", {**SWIN_B, "num_labels": 21841}, "microsoft/swin-base-patch4-window7-224-in22k"),
    ("SwinForImageClassification", "image-classification", {**IMAGENET, **SWIN_B, "image_size": 384, "window_size": 12}, "microsoft/swin-base-patch4-window12-384"),
    ("SwinForImageClassification", "image-classification", {**IMAGENET, **SWIN_L}, "microsoft/swin-large-patch4-window7-224"),
    ("SwinForImageClassification", "image-classification", {**SWIN_L, "num_labels": 21841, "image_size": 384, "window_size": 12}, "microsoft/swin-large-patch4-window12-384-in22k"),
    ("ConvNextForImageClassification", "image-classification", IMAGENET, "facebook/convnext-tiny-224"),
    ("ConvNextForImageClassification", "image-classification", {**IMAGENET, "depths": [3, 3, 27, 3]}, "facebook/convnext-small-224"),
    ("ConvNextForImageClassification", "image-classification", {**IMAGENET, **CONVNEXT_B}, "facebook/convnext-base-224"),
    ("ConvNextForImageClassification", "image-classification", {**IMAGENET, **CONVNEXT_B, "image_size": 384}, "facebook/convnext-base-384"),
    ("ConvNextForImageClassification", "image-classification", {**IMAGENET, **CONVNEXT_L}, "facebook/convnext-large-224 facebook/convnext-large-224-22k-1k"),
    ("ConvNextV2ForImageClassification", "image-classification", IMAGENET, "facebook/convnextv2-tiny-1k-224"),
    ("ResNetForImageClassification", "image-classification", {**IMAGENET, **BASIC, "depths": [2, 2, 2, 2]}, "microsoft/resnet-18"),
    ("ResNetForImageClassification", "image-classification", {**IMAGENET, **BASIC, "depths": [3, 4, 6, 3]}, "microsoft/resnet-34"),
    ("ResNetForImageClassification", "image-classification", IMAGENET, "microsoft/resnet-50"),
    ("ResNetForImageClassification", "image-classification", {**IMAGENET, "depths": [3, 4, 23, 3]}, "microsoft/resnet-101"),
    ("ResNetForImageClassification", "image-classification", {**IMAGENET, "depths": [3, 8, 36, 3]}, "microsoft/resnet-152"),
    ("RegNetForImageClassification", "image-classification", IMAGENET, "facebook/regnet-y-040"),
    ("MobileNetV1ForImageClassification", "image-classification", {"num_labels": 1001}, "google/mobilenet_v1_1.0_224"),
    ("MobileNetV2ForImageClassification", "image-classification", {"num_labels": 1001}, "google/mobilenet_v2_1.0_224"),
    ("MobileViTForImageClassification", "image-classification", IMAGENET, "apple/mobilevit-small"),
    ("MobileViTForImageClassification", "image-classification", {**IMAGENET, "hidden_sizes": [96, 120, 144], "neck_hidden_sizes": [16, 32, 48, 64, 80, 96, 384]},
     "apple/mobilevit-x-small"),
    ("MobileViTForImageClassification", "image-classification", {**IMAGENET, "hidden_sizes": [64, 80, 96], "neck_hidden_sizes": [16, 16, 24, 48, 64, 80, 320],
     "expand_ratio": 2.0}, "apple/mobilevit-xx-small"),
    ("EfficientNetForImageClassification", "image-classification", {**IMAGENET, "width_coefficient": 1.0, "depth_coefficient": 1.0, "image_size": 224, "hidden_dim": 1280},
     "google/efficientnet-b0"),
    ("EfficientNetForImageClassification", "image-classification", IMAGENET, "google/efficientnet-b7"),
    ("CvtForImageClassification", "image-classification", IMAGENET, "microsoft/cvt-13"),
    ("PoolFormerForImageClassification", "image-classification", IMAGENET, "sail/poolformer_s12"),
    ("Dinov2Model", "image-feature-extraction", {"image_size": 518, "patch_size": 14}, "facebook/dinov2-base"),
    ("Dinov2Model", "image-feature-extraction", {"image_size": 518, "patch_size": 14, "hidden_size": 384, "num_attention_heads": 6}, "facebook/dinov2-small"),
    ("Dinov2Model", "image-feature-extraction", {"image_size": 518, "patch_size": 14, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16},
     "facebook/dinov2-large"),
    ("SegformerForImageClassification", "image-classification", IMAGENET, "nvidia/mit-b0"),
    ("SegformerForImageClassification", "image-classification", {**IMAGENET, **MIT}, "nvidia/mit-b1"),
    *(
        ("SegformerForImageClassification", "image-classification", {**IMAGENET, **MIT, "depths": depths}, f"nvidia/mit-b{size}")
        for size, depths in SEGFORMER_DEPTHS.items()
    ),
    ("SegformerForSemanticSegmentation", "image-segmentation", {"num_labels": 150}, "nvidia/segformer-b0-finetuned-ade-512-512"),
    ("SegformerForSemanticSegmentation", "image-segmentation", {**MIT, "num_labels": 150}, "nvidia/segformer-b1-finetuned-ade-512-512"),
    *(
        ("SegformerForSemanticSegmentation", "image-segmentation", {**MIT, "depths": depths, "decoder_hidden_size": 768, "num_labels": labels}, name.format(size))
        for size, depths in SEGFORMER_DEPTHS.items()
        for labels, name in ((150, "nvidia/segformer-b{}-finetuned-ade-512-512"), (19, "nvidia/segformer-b{}-finetuned-cityscapes-1024-1024"))
        if (size, labels) != (5, 150)  # that one was trained at another size, 640
    ),
    ("DetrForObjectDetection", "object-detection", {"num_labels": 91}, "facebook/detr-resnet-50"),
    ("ConditionalDetrForObjectDetection", "object-detection", {"num_labels": 91}, "microsoft/conditional-detr-resnet-50"),
    ("DeformableDetrForObjectDetection", "object-detection", {"num_labels": 91}, "SenseTime/deformable-detr"),
    ("RTDetrForObjectDetection", "object-detection", {"num_labels": 80}, "PekingU/rtdetr_r50vd"),
    ("YolosForObjectDetection", "object-detection", _encoder(192, 12, 3, image_size=[800, 1333], num_labels=91, use_mid_position_embeddings=False), "hustvl/yolos-tiny"),
    ("YolosForObjectDetection", "object-detection", _encoder(384, 12, 6, image_size=[512, 864], num_labels=91), "hustvl/yolos-small"),
    ("OwlViTForObjectDetection", "zero-shot-object-detection", {}, "google/owlvit-base-patch32"),
    ("GroundingDinoForObjectDetection", "zero-shot-object-detection", {}, "IDEA-Research/grounding-dino-tiny"),
    ("SamModel", "mask-generation", {}, "facebook/sam-vit-base"),
    ("DPTForDepthEstimation", "depth-estimation", {**LARGE, "image_size": 384, "neck_hidden_sizes": [256, 512, 1024, 1024], "backbone_out_indices": [5, 11, 17, 23]}, "Intel/dpt-large"),
    ("GLPNForDepthEstimation", "depth-estimation", {**MIT, "depths": SEGFORMER_DEPTHS[4]}, "vinvino02/glpn-nyu vinvino02/glpn-kitti"),
    ("VideoMAEModel", "video-classification", {}, "MCG-NJU/videomae-base"),
    ("VideoMAEForVideoClassification", "video-classification", {"num_labels": 400}, "MCG-NJU/videomae-base-finetuned-kinetics"),
    ("TimesformerForVideoClassification", "video-classification", {"num_labels": 400}, "facebook/timesformer-base-finetuned-k400"),
    ("VivitForVideoClassification", "video-classification", {"num_labels": 400}, "google/vivit-b-16x2-kinetics400"),
)
MULTIMODAL: Rows = (
    ("CLIPModel", "zero-shot-image-classification", {}, "openai/clip-vit-base-patch32"),
    ("CLIPModel", "zero-shot-image-classification", {"vision_config": {"patch_size": 16}}, "openai/clip-vit-base-patch16"),
    ("CLIPModel", "zero-shot-image-classification", CLIP_L, "openai/clip-vit-large-patch14"),
    ("CLIPModel", "zero-shot-image-classification", {**CLIP_L, "vision_config": {**CLIP_L_VISION, "image_size": 336}}, "openai/clip-vit-large-patch14-336"),
    ("CLIPModel", "zero-shot-image-classification", {"vision_config": {"hidden_act": "gelu"}, "text_config": {"hidden_act": "gelu"}}, "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"),
    ("CLIPModel", "zero-shot-image-classification", {
        "vision_config": _encoder(1280, 32, 16, patch_size=14, hidden_act="gelu"), "text_config": _encoder(1024, 24, 16, hidden_act="gelu"), "projection_dim": 1024,
    }, "laion/CLIP-ViT-H-14-laion2B-s32B-b79K"),
    ("SiglipModel", "zero-shot-image-classification", {}, "google/siglip-base-patch16-224"),
    ("SiglipModel", "zero-shot-image-classification", {
        "vision_config": _encoder(1152, 27, 16, 4304, patch_size=14, image_size=384), "text_config": _encoder(1152, 27, 16, 4304),
    }, "google/siglip-so400m-patch14-384"),
    ("BlipForConditionalGeneration", "image-to-text", {"vision_config": {"image_size": 384}}, "Salesforce/blip-image-captioning-base"),
    ("BlipForConditionalGeneration", "image-to-text", {"vision_config": {**LARGE, "image_size": 384}, "text_config": {"encoder_hidden_size": 1024}},
     "Salesforce/blip-image-captioning-large"),
    ("Blip2ForConditionalGeneration", "image-to-text", {"text_config": {"model_type": "opt", "hidden_size": 2560, "num_hidden_layers": 32, "num_attention_heads": 32,
     "ffn_dim": 10240, "word_embed_proj_dim": 2560, "vocab_size": 50304}}, "Salesforce/blip2-opt-2.7b"),
    ("GitForCausalLM", "image-to-text", {}, "microsoft/git-base"),
    ("ViltForMaskedLM", "fill-mask", {}, "dandelin/vilt-b32-mlm"),
    ("ViltForQuestionAnswering", "visual-question-answering", {"num_labels": 3129}, "dandelin/vilt-b32-finetuned-vqa"),
    ("LlavaForConditionalGeneration", "image-text-to-text", {}, "llava-hf/llava-1.5-7b-hf"),
    ("FlavaForPreTraining", "feature-extraction", {}, "facebook/flava-full"),
    ("GroupViTModel", "feature-extraction", {}, "nvidia/groupvit-gcc-yfcc"),
    ("LayoutLMForMaskedLM", "fill-mask", {}, "microsoft/layoutlm-base-uncased"),
)
AUDIO: Rows = (
    ("Wav2Vec2Model", "feature-extraction", {}, "facebook/wav2vec2-base"),
    ("Wav2Vec2ForCTC", "automatic-speech-recognition", {}, "facebook/wav2vec2-base-960h"),
    ("Wav2Vec2ForCTC", "automatic-speech-recognition", LARGE, "facebook/wav2vec2-large-960h"),
    ("Wav2Vec2Model", "feature-extraction", XLSR, "facebook/wav2vec2-large-xlsr-53 "
     "facebook/wav2vec2-xls-r-300m facebook/mms-300m"),
    ("Wav2Vec2ForCTC", "automatic-speech-recognition", {**XLSR, "vocab_size": 33}, "jonatasgrosman/wav2vec2-large-xlsr-53-english"),
    ("HubertModel", "feature-extraction", {}, "facebook/hubert-base-ls960"),
    ("HubertForCTC", "automatic-speech-recognition", {**LARGE, **STABLE, "conv_bias": True}, "facebook/hubert-large-ls960-ft"),
    ("WavLMModel", "feature-extraction", {}, "microsoft/wavlm-base microsoft/wavlm-base-plus"),
    ("WavLMModel", "feature-extraction", {**LARGE, **STABLE}, "microsoft/wavlm-large"),
    ("ASTForAudioClassification", "audio-classification", {"num_labels": 527}, "MIT/ast-finetuned-audioset-10-10-0.4593"),
    ("ClapModel", "zero-shot-audio-classification", {}, "laion/clap-htsat-unfused"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {}, "openai/whisper-tiny"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", ENGLISH, "openai/whisper-tiny.en"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", _pair(512, 6, 8, 2048), "openai/whisper-base"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", _pair(512, 6, 8, 2048, **ENGLISH), "openai/whisper-base.en"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", WHISPER_S, "openai/whisper-small"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {**WHISPER_S, **ENGLISH}, "openai/whisper-small.en"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", WHISPER_M, "openai/whisper-medium"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", WHISPER_L, "openai/whisper-large openai/whisper-large-v2"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", WHISPER_L3, "openai/whisper-large-v3"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {**WHISPER_L3, "decoder_layers": 4}, "openai/whisper-large-v3-turbo"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {**WHISPER_L3, "decoder_layers": 2}, "distil-whisper/distil-large-v3"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {**WHISPER_S, **ENGLISH, "decoder_layers": 4}, "distil-whisper/distil-small.en"),
    ("WhisperForConditionalGeneration", "automatic-speech-recognition", {**WHISPER_M, **ENGLISH, "decoder_layers": 2}, "distil-whisper/distil-medium.en"),
    ("Speech2TextForConditionalGeneration", "automatic-speech-recognition", {}, "facebook/s2t-small-librispeech-asr"),
)
# fmt: on
TABLE = {"text": TEXT, "vision": VISION, "multimodal": MULTIMODAL, "audio": AUDIO}
