"""Information consistency (paper A §3.1): claims of one text, verified against another, both ways."""

#: Names that `claim_extractor`, `claim_verifiers` and `measured_verifiers` take besides the models of models.yaml.
EXTRACTORS = ("sentences",)
VERIFIERS = ("lexical", "embedding", "fused", "likelihood")
#: Those verifiers that read other languages than English, for `original_language_verifier`.
MULTILINGUAL = ("embedding",)
#: The embedded model whose token probabilities `likelihood` reads.
LIKELIHOOD_MODEL = "smollm2-135m-instruct"
