"""The label that marks a place without a label."""

#: Losses and metrics leave out the places with this label, as in torch.
IGNORED = -100
