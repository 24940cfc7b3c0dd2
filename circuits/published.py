"""Figures that papers published and that no circuit measures yet."""

from __future__ import annotations

import xarray as xr

# Štefánik et al. 2026 (arXiv 2510.26285), steering: Llama-3.2-3B, share of wrong answers repaired
# with vectors of the right answers.
_REPAIRED = {"multiplication": 0.30, "division": 0.42}
# Štefánik et al. 2026 (arXiv 2510.26285): correlations of the similarities of all pairs of 0 to
# 999 (Pearson or Spearman is not said), lowest and highest of the models named.
_SIMILARITIES = {
    ("cosine", "within OLMo-2"): (0.83, 0.91),
    ("cosine", "OLMo-2 and Llama-3"): (0.69, 0.88),
    ("cosine", "within Llama-3"): (0.75, 0.91),
    ("cosine", "Phi-4 and others"): (0.59, 0.69),
    ("cosine", "Phi-4-mini and others"): (0.58, 0.76),
    ("cosine", "Phi-4 and Phi-4-mini"): (0.45, 0.45),
    ("cosine, random tokens", "all pairs but the next"): (-0.43, 0.56),
    ("cosine, random tokens", "Llama-3.2-1B and 3B"): (0.906, 0.906),
    ("dot", "OLMo-2 and Llama-3"): (0.72, 0.95),
    ("dot", "Phi-4 and others"): (0.44, 0.66),
    ("dot", "Phi-4-mini and others"): (0.21, 0.37),
    ("Euclid", "all pairs without Phi-4"): (0.10, 0.97),
    ("Euclid", "lowest with Phi-4"): (-0.51, -0.51),
}


def steering_figures() -> xr.Dataset:
    """What steering towards the right answer repaired in the paper, of another model and tasks.

    Returns:
        `repaired` over task; attributes `of` and `source`.
    """
    return xr.Dataset(
        {"repaired": ("task", list(_REPAIRED.values()))},
        {"task": list(_REPAIRED)},
        {"of": "Llama-3.2-3B", "source": "Štefánik et al. 2026 (arXiv 2510.26285)"},
    )


def similarity_figures() -> xr.Dataset:
    """Published similarities of the number embeddings of language models.

    Returns:
        `lowest` and `highest` over quantity, with the coordinates `similarity` and `models`.
    """
    (similarity, models), (lowest, highest) = (
        zip(*columns, strict=True) for columns in (_SIMILARITIES, _SIMILARITIES.values())
    )
    return xr.Dataset(
        {"lowest": ("quantity", list(lowest)), "highest": ("quantity", list(highest))},
        {"similarity": ("quantity", list(similarity)), "models": ("quantity", list(models))},
        {
            "source": "Štefánik et al. 2026: input embeddings of 0 to 999, whether by Pearson or "
            "Spearman is not said"
        },
    )
