"""The paper's networks in eager PyTorch, and how several of them are trained."""

import copy
from collections.abc import Callable

from primax.config.schema import NetConfig

try:
    import torch
    from torch import nn
except ImportError as error:
    how = "pip install -c constraints.txt -e '.[bench]'"
    raise SystemExit(f"PyTorch is needed ({error}): {how}") from None


def trunk(planes: tuple[int, int, int], config: NetConfig, outputs: int) -> nn.Sequential:
    """Two 3x3 convolutions with ReLU, flattened and mapped to an embedding."""
    channels, rows, cols = planes
    return nn.Sequential(
        nn.Conv2d(channels, config.first_channels, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(config.first_channels, config.second_channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(rows * cols * config.second_channels, outputs),
    )


def net(planes: tuple[int, int, int], config: NetConfig, outputs: int) -> nn.Sequential:
    """A trunk and a linear output layer; PyTorch's own first weights are ours too."""
    return nn.Sequential(
        trunk(planes, config, config.embedding), nn.Linear(config.embedding, outputs)
    )


def frozen(nets: list[nn.Module]) -> list[nn.Module]:
    """Copies that no gradient reaches."""
    return [copy.deepcopy(net).requires_grad_(False) for net in nets]


class Ensemble:
    """Networks that train together: one way back through all, a clip for each, one Adam."""

    def __init__(
        self, make: Callable[[], nn.Module], num: int, rate: float, clip: float, device: str
    ):
        self.online: list[nn.Module] = [make().to(device) for _ in range(num)]
        self.target, self.clip = frozen(self.online), clip
        parameters = [x for net in self.online for x in net.parameters()]
        self.adam = torch.optim.Adam(parameters, lr=rate, fused=True)

    def step(self, losses: list[torch.Tensor]) -> torch.Tensor:
        """One step of every network on its own loss; the losses."""
        self.adam.zero_grad()
        stacked = torch.stack(losses)
        stacked.sum().backward()
        for net in self.online:
            nn.utils.clip_grad_norm_(net.parameters(), self.clip)
        self.adam.step()
        return stacked.detach()

    def sync(self) -> None:
        """Copies the networks to their targets."""
        with torch.no_grad():
            for net, target in zip(self.online, self.target, strict=True):
                for x, y in zip(net.parameters(), target.parameters(), strict=True):
                    y.copy_(x)
