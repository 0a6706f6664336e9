"""A RoBERTa and a ModernBERT of a few thousand random weights, with a tokenizer of the words of `epitome_like`."""

from __future__ import annotations

from pathlib import Path

WIDTH = 16


def save(kind: str, folder: Path, texts: list[str]) -> Path:
    """A checkpoint as the hub has them: config, safetensors weights, tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import (
        ModernBertConfig,
        ModernBertModel,
        PreTrainedTokenizerFast,
        RobertaConfig,
        RobertaModel,
    )

    special = ["<pad>", "<s>", "</s>", "<unk>"]
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace()])
    words.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=300, special_tokens=special))
    words.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    names = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "cls_token": "<s>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **names)
    sizes = {
        "vocab_size": len(tokenizer),
        "hidden_size": WIDTH,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "max_position_embeddings": 80,
    }
    torch.manual_seed(0)
    if kind == "roberta":
        model = RobertaModel(RobertaConfig(**sizes, type_vocab_size=1))
    else:
        model = ModernBertModel(ModernBertConfig(**sizes, cls_token_id=1, sep_token_id=2, local_attention=8))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
