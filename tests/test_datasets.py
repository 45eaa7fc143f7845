"""Data: what ships is whole, what is made follows its seed, and splits and batches lose no row."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import autodiff_lab
from autodiff_lab import datasets

DATA = Path(autodiff_lab.__file__).parent / "data"


def test_the_digits_are_the_numbers_of_the_file() -> None:
    images, labels = datasets.digits()
    lines = gzip.decompress((DATA / "digits.csv.gz").read_bytes()).decode().splitlines()
    assert len(lines) == len(images) == 1797
    for place in (0, 1000, 1796):
        *pixels, label = map(int, lines[place].split(","))
        assert labels[place] == label
        np.testing.assert_array_equal(images[place], np.reshape(pixels, (8, 8)) / np.float32(16))


def test_every_digit_is_there_about_equally_often_and_all_pixels_lie_between_paper_and_ink() -> None:
    images, labels = datasets.digits()
    assert images.dtype == np.float32 and images.min() == 0 and images.max() == 1
    counts = np.bincount(labels)
    assert len(counts) == 10 and counts.min() > 170 and counts.max() < 190


def test_every_file_of_data_is_attributed() -> None:
    attribution = (DATA / "ATTRIBUTION.md").read_text(encoding="utf-8")
    missing = [
        path.name for path in DATA.iterdir() if path.name != "ATTRIBUTION.md" and f"`{path.name}`" not in attribution
    ]
    assert not missing
    assert "CC BY 4.0" in attribution and "Python Software Foundation" in attribution


def test_the_text_is_english_of_a_useful_size() -> None:
    text = datasets.text()
    assert 100_000 < len(text) < 200_000
    assert text.isascii() and text.lower().count(" the ") > 1000


def test_encoding_and_decoding_a_text_gives_it_back() -> None:
    text = datasets.text()[:5000]
    vocabulary = datasets.Vocabulary.of(text)
    tokens = vocabulary.encode(text)
    assert vocabulary.decode(tokens) == text
    assert tokens.min() == 0 and tokens.max() == vocabulary.size - 1
    with pytest.raises(ValueError, match="the vocabulary has no \\['é'\\]"):
        vocabulary.encode("é")


@pytest.mark.parametrize("make", [datasets.spirals, datasets.two_moons])
def test_points_follow_their_seed(make: object) -> None:
    assert callable(make)
    (points, classes), (again, _), (other, _) = make(seed=0), make(seed=0), make(seed=1)
    assert points.dtype == np.float32 and points.shape == (len(classes), 2)
    np.testing.assert_array_equal(points, again)
    assert not np.array_equal(points, other)


def test_without_noise_a_spirals_arms_are_one_arm_turned() -> None:
    points, classes = datasets.spirals(300, arms=3, noise=0.0, seed=0)
    radius, angle = np.hypot(*points.T), np.arctan2(points[:, 1], points[:, 0])
    turned = angle - 6.0 * radius - 2 * np.pi * classes / 3
    np.testing.assert_allclose(np.cos(turned), 1.0, atol=1e-5)
    assert np.bincount(classes).tolist() == [100, 100, 100]


def test_without_noise_the_moons_are_half_circles_that_reach_into_each_other() -> None:
    points, classes = datasets.two_moons(200, noise=0.0, seed=0)
    upper, lower = points[classes == 0], points[classes == 1]
    np.testing.assert_allclose(np.hypot(*upper.T), 1.0, rtol=1e-6)
    np.testing.assert_allclose(np.hypot(*(lower - [1.0, 0.5]).T), 1.0, rtol=1e-6)
    assert upper[:, 1].min() >= 0 and lower[:, 1].max() <= 0.5 and lower[:, 0].min() < upper[:, 0].max()


def test_a_split_holds_every_row_once_and_keeps_rows_together() -> None:
    x, y = np.arange(50).reshape(50, 1), np.arange(50) * 10
    (x_train, y_train), (x_test, y_test) = datasets.split(x, y, test=0.3, seed=3)
    assert (len(x_train), len(x_test)) == (35, 15)
    assert sorted([*x_train[:, 0], *x_test[:, 0]]) == list(range(50))
    np.testing.assert_array_equal([*y_train, *y_test], 10 * np.concatenate([x_train, x_test])[:, 0])
    np.testing.assert_array_equal(datasets.split(x, y, test=0.3, seed=3).test[1], y_test)
    assert not np.array_equal(datasets.split(x, y, test=0.3, seed=4).test[1], y_test)


@pytest.mark.parametrize("size", [1, 7, 20, 100])
def test_an_epoch_of_batches_holds_every_row_once(size: int) -> None:
    x = np.arange(20)
    epoch = list(datasets.batches(x, x * 2, size=size, seed=0))
    assert sorted(np.concatenate([xs for xs, _ in epoch]).tolist()) == x.tolist()
    assert all(len(xs) == min(size, 20) for xs, _ in epoch[: 20 // size])
    assert all(np.array_equal(ys, 2 * xs) for xs, ys in epoch)


def test_batches_of_another_seed_come_in_another_order() -> None:
    one, again, other = ([xs.tolist() for (xs,) in datasets.batches(np.arange(20), size=5, seed=s)] for s in (0, 0, 1))
    assert one == again != other


def test_pieces_of_a_text_reach_its_first_and_last_token() -> None:
    tokens = np.arange(6)
    seen = {(int(x[0, 0]), int(y[0, -1])) for x, y in datasets.text_batches(tokens, length=3, size=1, count=50, seed=0)}
    assert seen == {(0, 3), (1, 4), (2, 5)}


def test_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match=r"split: expected arrays with equally many rows.* got rows \[3, 4\]"):
        datasets.split(np.zeros(3), np.zeros(4), seed=0)
    with pytest.raises(ValueError, match="test must be a fraction between 0 and 1, got 20"):
        datasets.split(np.zeros(3), test=20, seed=0)
    with pytest.raises(ValueError, match="size must be at least 1"):
        next(datasets.batches(np.zeros(3), size=0, seed=0))
    with pytest.raises(ValueError, match="at least one array"):
        next(datasets.batches(size=2, seed=0))
    with pytest.raises(ValueError, match="takes 5 tokens, but there are only 4"):
        next(datasets.text_batches(np.arange(4), length=4, size=1, count=1, seed=0))
