"""Tiny random NLLB checkpoints, tokenizer included, for the tests that need torch."""

from __future__ import annotations

from pathlib import Path

SENTENCES = [
    "El sol sale por el este y se pone por el oeste durante todo el año.",
    "Llueve.",
    "La ciudad tiene tres puentes, dos mercados y un teatro antiguo que se quemó en 1871.",
    "¿Dónde está la estación?",
    "No, gracias.",
    "El agua hierve a cien grados al nivel del mar, pero antes en la montaña.",
    "Mi hermana estudia química en la universidad.",
    "El tren de las ocho llega tarde.",
]
TEXT = [
    *SENTENCES,
    "The sun rises in the east and sets in the west all year round.",
    "It rains, and the river below the old mill is rising again.",
    "Three bridges cross the river in the middle of the town.",
    "My sister studies chemistry and plays the violin in the evening.",
    "सूरज पूरब में उगता है और पश्चिम में डूबता है।",
    "図書館は駅の近くにあります。",
]
SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 256,
    "init_std": 1.0,
    "scale_embedding": False,  # else the last token is what a random model likes best
}
END, PAD = 2, 1
MAX_TOKENS = 20


def save_tokenizer(folder: Path) -> None:
    import sentencepiece
    import transformers
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 4),
        model_prefix=str(folder / "sentencepiece.bpe"),
        model_type="bpe",
        vocab_size=300,
        character_coverage=1.0,
        minloglevel=2,
    )
    tokenizer = transformers.NllbTokenizer.from_pretrained(folder, extra_special_tokens=FAIRSEQ_LANGUAGE_CODES)
    tokenizer.save_pretrained(folder)
    (folder / "sentencepiece.bpe.model").unlink()


def save_checkpoints(tokenizer_folder: Path, folders: dict[str, Path], seed: int = 5) -> None:
    """The models of ``folders``, whose keys are kinds: dense, experts. The end of sentence is likely enough that some
    outputs end and some do not."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_folder)
    torch.manual_seed(seed)
    for kind, folder in folders.items():
        if kind == "dense":
            config = transformers.M2M100Config(vocab_size=len(tokenizer), **SIZES)
            model = transformers.M2M100ForConditionalGeneration(config)
        else:
            sparse = {"num_experts": 6, "encoder_sparse_step": 2, "decoder_sparse_step": 2}
            config = transformers.NllbMoeConfig(vocab_size=len(tokenizer), **sparse, **SIZES)
            model = transformers.NllbMoeForConditionalGeneration(config)
        with torch.no_grad():
            model.get_input_embeddings().weight[END] *= 3
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
