"""The folder of a run survives a crash at every write, sync, rename and removal; no jax here."""

import errno
import json
import os
import shutil

import pytest

from primax.errors import InputError
from primax.runs import checkpoints, disk
from primax.runs.stops import locked

WINDOWS = 6


class Crash(BaseException):
    """The machine died."""


def rows(window: int) -> dict[str, bytes]:
    """The last table has rows for some windows only."""
    is_first = window == 1
    episodes = b"".join(b"%d,%d,%d\n" % (seed, window, 100 * window) for seed in range(3))
    return {
        "episodes.csv": b"seed,episode,step\n" * is_first + episodes,
        "windows.csv": b"seed,step,loss\n" * is_first + b"0,%d,0.5\n" % (100 * window),
        "maps.raw": bytes([window]) * 70,
        "replays.jsonl": b'{"step":%d}\n' % (100 * window) if window % 3 == 0 else b"",
    }


def state(window: int) -> bytes:
    return b"state %d" % window * 50


def run(folder, until: int = WINDOWS) -> list[str]:
    """A run in miniature: recover, then window by window, a checkpoint every second one."""
    checkpoint, damaged = checkpoints.load(folder)
    if checkpoint is None:
        checkpoints.clear(folder)
    else:
        checkpoints.rewind(folder, checkpoint)
        assert checkpoint.state.read_bytes() == state(checkpoint.clock)
    for window in range(checkpoint.clock + 1 if checkpoint else 1, until + 1):
        for name, content in rows(window).items():
            if content:
                disk.append(folder / name, content)
        if window == WINDOWS:
            disk.write_whole(folder / "maps.npz", (folder / "maps.raw").read_bytes()[::-1])
        if window % 2 == 0:
            save(folder, window, disk.FINAL if window == WINDOWS else disk.TABLES)
    if until == WINDOWS:
        disk.keep_only(folder, disk.FINAL)
    return damaged


def save(folder, window: int, tables) -> None:
    def write(file) -> None:
        file.write(state(window)[:100])
        file.write(state(window)[100:])

    checkpoints.save(folder, window, write, {"made": "here"}, tables)


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

    def stream(path, write):
        is_last = touched()
        with path.open("wb") as file:
            hashing = disk._Hashing(file)
            write(hashing)
            if is_last:
                file.truncate(100)
                raise Crash
        return hashing.hash.hexdigest()

    def dying(real):
        def call(*args, **kwargs):
            if touched():
                raise Crash
            return real(*args, **kwargs)

        return call

    monkeypatch.setattr(disk, "write", write)
    monkeypatch.setattr(disk, "stream", stream)
    monkeypatch.setattr(disk, "sync_folder", dying(disk.sync_folder))
    monkeypatch.setattr(os, "replace", dying(os.replace))
    monkeypatch.setattr(os, "unlink", dying(os.unlink))
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
    # To clear five tables, and a sync; three appends a window and two more; per checkpoint two
    # writes, two syncs, a rename; an old one's removal, and its two files'; at the end maps.npz
    # written, renamed and synced, and maps.raw removed and synced.
    assert crashes == (5 + 1) + (3 * WINDOWS + 2) + 5 * 3 + (1 + 2) + 3 + 2


@pytest.mark.parametrize("name", ["about.json", "state.npz"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "removed"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(tmp_path, name, damage):
    run(tmp_path, until=5)
    path = tmp_path / "checkpoints" / "000000004" / name
    content = bytearray(path.read_bytes())
    if damage == "removed":
        path.unlink()
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content if damage == "flipped" else content[: len(content) // 2])
    checkpoint, damaged = checkpoints.load(tmp_path)
    assert checkpoint is not None and checkpoint.clock == 2
    assert len(damaged) == 1 and "000000004" in damaged[0]
    assert checkpoints.newest(tmp_path).clock == 2


def test_every_bit_of_the_description_is_guarded(tmp_path):
    """White space between the parts carries nothing; everything else must be noticed."""
    run(tmp_path)
    place = tmp_path / "checkpoints" / f"{WINDOWS:09d}"
    content, noticed = (place / "about.json").read_bytes(), 0
    for i in range(0, len(content), 7):
        (place / "about.json").write_bytes(content[:i] + bytes([content[i] ^ 4]) + content[i + 1 :])
        try:
            checkpoints._verified(place)
        except checkpoints.DamagedError:
            noticed += 1
        else:
            assert json.loads((place / "about.json").read_bytes()) == json.loads(content)
    assert noticed > len(content) / 7 / 2


@pytest.mark.parametrize("until", [5, WINDOWS])
@pytest.mark.parametrize("name", sorted({*disk.TABLES, *disk.FINAL}))
def test_a_table_that_is_not_the_one_it_was_is_noticed(tmp_path, name, until):
    run(tmp_path, until)
    path = tmp_path / name
    if not path.exists():
        assert name in ("maps.raw", "maps.npz")
        return
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    checkpoint, damaged = checkpoints.load(tmp_path)
    assert name in damaged[0]
    # The first checkpoint is from before the first replay.
    assert checkpoint is None or (name, checkpoint.clock) == ("replays.jsonl", 2)


def test_a_table_the_checkpoint_saw_nothing_of_begins_again(tmp_path):
    """Cut to no bytes, it would never get its header."""
    run(tmp_path, until=2)
    disk.append(tmp_path / "replays.jsonl", b"later")
    assert checkpoints.newest(tmp_path).about["tables"]["replays.jsonl"][0] == 0
    checkpoints.rewind(tmp_path, checkpoints.newest(tmp_path))
    assert not (tmp_path / "replays.jsonl").exists()
    checkpoints.rewind(tmp_path, checkpoints.newest(tmp_path))


def test_a_checkpoint_that_finds_no_space_leaves_nothing_behind(tmp_path):
    run(tmp_path, until=5)
    wanted = everything(tmp_path)

    def write(file) -> None:
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        checkpoints.save(tmp_path, 5, write, {})
    assert everything(tmp_path) == wanted


def test_rewinding_cuts_what_came_later(tmp_path):
    run(tmp_path)
    wanted = everything(tmp_path)
    disk.append(tmp_path / "episodes.csv", b"0,7,700\n0,8")
    checkpoint, _ = checkpoints.load(tmp_path)
    assert checkpoint is not None
    checkpoints.rewind(tmp_path, checkpoint)
    assert everything(tmp_path) == wanted


def test_a_folder_in_use_is_locked(tmp_path):
    with locked(tmp_path), pytest.raises(InputError, match="in use"), locked(tmp_path):
        raise AssertionError("two holders")
    with locked(tmp_path):
        assert (tmp_path / "lock").exists()


def test_only_compressed_tables_make_a_packed_run(tmp_path):
    (tmp_path / "episodes.csv.bak").touch()
    assert not disk.is_packed(tmp_path)
    (tmp_path / "episodes.csv.gz").touch()
    assert disk.is_packed(tmp_path)
    (tmp_path / "episodes.csv").touch()
    assert not disk.is_packed(tmp_path)
