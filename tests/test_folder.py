"""The folder of a run survives a crash at every write, sync, rename and removal; no jax here."""

import json
import os
import shutil

import pytest

from primax import folder as disk
from primax.errors import InputError

WINDOWS = 6


class Crash(BaseException):
    """The machine died."""


def rows(window: int) -> dict[str, bytes]:
    header = {"episodes.csv": b"seed,episode,step\n", "windows.csv": b"seed,step,loss\n"}
    body = {
        "episodes.csv": b"".join(b"%d,%d,%d\n" % (seed, window, 100 * window) for seed in range(3)),
        "windows.csv": b"0,%d,0.5\n" % (100 * window),
    }
    return {name: (header[name] if window == 1 else b"") + body[name] for name in disk.TABLES}


def state(window: int) -> bytes:
    return b"state %d" % window * 50


def run(folder) -> list[str]:
    """A run in miniature: recover, then window by window, a checkpoint every second one."""
    checkpoint, damaged = disk.load(folder)
    if checkpoint is None:
        for name in disk.TABLES:
            (folder / name).unlink(missing_ok=True)
    else:
        disk.rewind(folder, checkpoint)
        assert checkpoint.state == state(checkpoint.clock)
    for window in range(checkpoint.clock + 1 if checkpoint else 1, WINDOWS + 1):
        for name, content in rows(window).items():
            disk.append(folder / name, content)
        if window % 2 == 0:
            disk.save(folder, window, state(window), {"made": "here"})
    return damaged


def everything(folder) -> dict[str, bytes]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def crash_at(monkeypatch, countdown: int) -> None:
    """Dies at the n-th touch of the disk; a write that dies leaves half of its bytes."""
    left = [countdown]

    def touched() -> bool:
        left[0] -= 1
        return left[0] == 0

    def write(path, content, mode):
        is_last = touched()
        with path.open(mode) as file:
            file.write(content[: len(content) // 2] if is_last else content)
        if is_last:
            raise Crash

    def dying(real):
        def call(*args, **kwargs):
            if touched():
                raise Crash
            return real(*args, **kwargs)

        return call

    monkeypatch.setattr(disk, "_write", write)
    monkeypatch.setattr(disk, "sync_folder", dying(disk.sync_folder))
    monkeypatch.setattr(os, "replace", dying(os.replace))
    monkeypatch.setattr(shutil, "rmtree", dying(shutil.rmtree))


def test_a_crash_at_every_touch_of_the_disk_is_survived(tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    assert run(whole) == []
    wanted, crashes = everything(whole), 0
    for countdown in range(1, 1_000):
        folder = tmp_path / str(countdown)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            crash_at(patch, countdown)
            try:
                run(folder)
            except Crash:
                crashes += 1
            else:
                break
        assert run(folder) == [], "a crash must never look like damage"
        left = everything(folder)
        assert wanted.items() <= left.items(), f"after a crash at touch {countdown}"
        # A crash in the last clean-up may leave an older checkpoint behind, whole and harmless.
        assert all("000000002" in name or ".part" in name for name in set(left) - set(wanted))
    # Two appends a window, and per checkpoint two writes, two syncs, a rename; then a removal.
    assert crashes == 2 * WINDOWS + 5 * 3 + 1


@pytest.mark.parametrize("name", ["about.json", "state.npz"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "removed"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, name, damage):
    run(tmp_path)
    path = tmp_path / "checkpoints" / f"{WINDOWS:09d}" / name
    content = bytearray(path.read_bytes())
    if damage == "removed":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content if damage == "flipped" else content[: len(content) // 2])
    checkpoint, damaged = disk.load(tmp_path)
    assert checkpoint is not None and checkpoint.clock == WINDOWS - 2
    assert len(damaged) == 1 and f"{WINDOWS:09d}" in damaged[0]


def test_every_bit_of_the_description_is_guarded(tmp_path):
    """White space between the parts carries nothing; everything else must be noticed."""
    run(tmp_path)
    place = tmp_path / "checkpoints" / f"{WINDOWS:09d}"
    content, noticed = (place / "about.json").read_bytes(), 0
    for i in range(0, len(content), 7):
        (place / "about.json").write_bytes(content[:i] + bytes([content[i] ^ 4]) + content[i + 1 :])
        try:
            disk._verified(tmp_path, place)
        except disk.DamagedError:
            noticed += 1
        else:
            assert json.loads((place / "about.json").read_bytes()) == json.loads(content)
    assert noticed > len(content) / 7 / 2


def test_a_table_that_is_not_the_one_it_was_is_noticed(tmp_path):
    run(tmp_path)
    path = tmp_path / "episodes.csv"
    path.write_bytes(path.read_bytes().replace(b"0,1,100", b"0,1,101"))
    checkpoint, damaged = disk.load(tmp_path)
    assert checkpoint is None and all("episodes.csv" in what for what in damaged)


def test_rewinding_cuts_what_came_later(tmp_path):
    run(tmp_path)
    wanted = everything(tmp_path)
    disk.append(tmp_path / "episodes.csv", b"0,7,700\n0,8")
    checkpoint, _ = disk.load(tmp_path)
    assert checkpoint is not None
    disk.rewind(tmp_path, checkpoint)
    assert everything(tmp_path) == wanted


def test_a_folder_in_use_is_locked(tmp_path):
    with disk.locked(tmp_path), pytest.raises(InputError, match="in use"), disk.locked(tmp_path):
        raise AssertionError("two holders")
    with disk.locked(tmp_path):
        assert (tmp_path / "lock").exists()
