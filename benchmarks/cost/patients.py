"""What is operated on: MiniLM, and random weights in the shape of BERT-base or MiniLM. No downloads."""

import copy
from typing import Any

import torch
from transformers import BertConfig, BertModel

SHAPES: dict[str, dict[str, int]] = {
    "bert-base": {},  # BertConfig's own: 12 layers, 12 heads, 768 wide
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
    "tiny": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 64},
}
SENTENCE = (  # 25 tokens
    "The animal did not cross the street because it was too tired, and the driver stopped for it near the old bridge. "
)


def shaped(shape: str, model_class: type = BertModel, implementation: str = "sdpa") -> Any:
    """A BERT of random weights, in eval mode.

    As BERT is initialised, its attention is next to uniform and its biases are 0, which hides mistakes: queries and keys are
    enlarged and biases drawn.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        config = BertConfig(**SHAPES[shape])
        config._attn_implementation = implementation
        model = model_class(config)
        for name, parameter in model.named_parameters():
            if ".query.weight" in name or ".key.weight" in name:
                parameter.mul_(3.0)
            if name.endswith("bias"):
                parameter.normal_(0, 0.05)
    return model.eval().requires_grad_(False)


def twin(model: Any, implementation: str | None = None) -> Any:
    """The same model once more over the same storage: copied weights lie on other pages, and that alone is up to 30 %."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    copied = copy.deepcopy(model, shared)
    if implementation is not None:
        copied.set_attn_implementation(implementation)
    return copied


def ids(tokens: int, vocabulary: int, rows: int = 1) -> torch.Tensor:
    """Random words between [CLS] and [SEP], the same ones every time."""
    generator = torch.Generator().manual_seed(1)
    found = torch.randint(1000, vocabulary, (rows, tokens), generator=generator)
    found[:, 0], found[:, -1] = 101, 102
    return found


def patient(name: str, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Any:
    """What `models.load` returns: MiniLM itself, or a random BERT of a shape, read by MiniLM's tokenizer."""
    from models import LoadedModel, load

    real = load("minilm", device=device, dtype=dtype)
    if name == "minilm":
        with torch.no_grad():
            for parameter in real.model.parameters():
                parameter.data = parameter.data.clone()  # weights mapped from a file are not aligned
        return real
    model = shaped(name).to(device, dtype)
    return LoadedModel(
        model,
        real.tokenizer,
        torch.device(device),
        dtype,
        name,
        "encoder",
        model.config.max_position_embeddings,
        trained=False,
    )
