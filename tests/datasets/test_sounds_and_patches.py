"""Mixed phonemes and patches of images, as MCA08 appendix E.4 and E.5 describe them."""

import socket
import sys

import numpy as np
import pytest
from scipy import signal
from scipy.io import wavfile

from multicause.datasets import make_patches, make_phoneme_mixtures

RATE = 8000
FREQUENCIES = 100 * 40 ** (np.arange(50) / 49)  # 100 to 4000 Hz in equal ratios
DECIBELS_PER_UNIT = 4.28


def tone(frequency, n=1000, rate=RATE):
    return np.sin(2 * np.pi * frequency * np.arange(n) / rate)


def levels(wave):
    """Decibels of a waveform's spectrogram (50, 9), by scipy's evaluation of a transfer function."""
    window = signal.get_window("hamming", 200, fftbins=False)
    segments = [wave[100 * t : 100 * t + 200] * window for t in range(9)]
    magnitudes = [np.abs(signal.freqz(segment, worN=FREQUENCIES, fs=RATE)[1]) for segment in segments]
    return 20 * np.log10(np.maximum(np.transpose(magnitudes), 1e-300))


def test_shapes():
    phonemes = make_phoneme_mixtures(40, random_state=0)
    assert phonemes.data.shape == (40, 450)
    assert phonemes.causes.shape == (6, 450)
    assert phonemes.states.shape == (40, 6)
    assert phonemes.waveforms.shape == (6, 1000)
    assert phonemes.image_shape == (50, 9)
    assert phonemes.sample_rate == RATE
    assert len(set(phonemes.names)) == 6
    np.testing.assert_allclose(phonemes.activity, 2 / 6)
    np.testing.assert_allclose((phonemes.waveforms**2).mean(axis=1), 1)
    assert phonemes.causes.min() == 0
    assert phonemes.causes.max() == pytest.approx(10)


def test_rows_are_log_spectrograms_of_added_waveforms():
    """Waveforms are added and transformed by scipy, and scaled by hand."""
    phonemes = make_phoneme_mixtures(8, activity=0.5, random_state=1)
    loudest = max(levels(wave).max() for wave in phonemes.waveforms)
    for row, state in zip(phonemes.data, phonemes.states, strict=True):
        scaled = 10 + (levels(state @ phonemes.waveforms) - loudest) / DECIBELS_PER_UNIT
        np.testing.assert_allclose(row.reshape(50, 9), np.maximum(scaled, 0), atol=1e-9)


def test_rows_without_a_phoneme_are_zero(seed):
    phonemes = make_phoneme_mixtures(200, random_state=seed)
    silent = phonemes.states.sum(axis=1) == 0
    assert silent.any()
    assert (phonemes.data[silent] == 0).all()
    assert (phonemes.data[~silent].max(axis=1) > 5).all()


def test_tone_lights_up_its_channel():
    channels = [8, 20, 33, 45]
    causes = make_phoneme_mixtures(1, waveforms=[tone(FREQUENCIES[k]) for k in channels]).causes
    for k, cause in zip(channels, causes.reshape(-1, 50, 9), strict=True):
        assert (cause.argmax(axis=0) == k).all()
        np.testing.assert_allclose(cause[k], 10, atol=0.1)  # steady, and as loud as the other tones


def test_time_runs_along_the_second_axis():
    """A click at sample 450 lies in the windows that start at 300 and 400, and in no other."""
    click = np.zeros(1000)
    click[450] = 1
    cause = make_phoneme_mixtures(1, waveforms=[click]).causes.reshape(50, 9)
    np.testing.assert_array_equal((cause > 0).any(axis=0), [t in (3, 4) for t in range(9)])
    np.testing.assert_allclose(cause[:, 4], 10, atol=0.1)  # a click is white


def test_top_of_the_dynamic_range_is_kept():
    """A second tone 40 dB below the first is 10 (1 − 40 / 42.8); 46 dB below, it is nothing."""
    time = np.arange(1000)
    for below, expected in ((40, 10 - 40 / DECIBELS_PER_UNIT), (46, 0)):
        wave = np.where(time < 400, tone(FREQUENCIES[20]), 0) + np.where(
            time >= 500, 10 ** (-below / 20) * tone(FREQUENCIES[40]), 0
        )
        last = make_phoneme_mixtures(1, waveforms=[wave]).causes.reshape(50, 9)[:, -1]
        assert last.max() == pytest.approx(expected, abs=0.05)


def test_loudness_of_a_recording_does_not_matter():
    waves = make_phoneme_mixtures(1).waveforms
    factors = np.array([1e-200, 0.3, 1, -7, 3e4, 1e200])[:, None]
    one = make_phoneme_mixtures(30, waveforms=waves, random_state=0)
    other = make_phoneme_mixtures(30, waveforms=np.abs(factors) * waves, random_state=0)
    np.testing.assert_allclose(one.data, other.data, atol=1e-9)
    np.testing.assert_allclose(make_phoneme_mixtures(1, waveforms=factors * waves).causes, one.causes, atol=1e-9)


def test_mixtures_follow_the_max_rule(seed):
    """|z + z'| is within 3 dB of |z| if |z'| ≤ (1 − 10^(−3/20)) |z|, and never above |z| + |z'|.

    That one sound dominates so clearly holds for a third of the audible points. Interference is mild elsewhere: 73 % of
    the points are within 3 dB and 94 % within 6 dB of the maximum (71 and 93 % for recorded phonemes of one speaker),
    measured; the last two lines leave a margin.
    """
    phonemes = make_phoneme_mixtures(300, random_state=seed)
    distances = []
    for row, state in zip(phonemes.data, phonemes.states, strict=True):
        if state.sum() < 2:
            continue
        causes = phonemes.causes[state == 1]
        amplitudes = 10 ** ((causes - 10) * DECIBELS_PER_UNIT / 20)  # of clipped points an upper bound
        loudest, total = amplitudes.max(axis=0), amplitudes.sum(axis=0)
        assert (row <= 10 + 20 * np.log10(total) / DECIBELS_PER_UNIT + 1e-9).all()
        distance = np.abs(row - causes.max(axis=0)) * DECIBELS_PER_UNIT
        dominated = total - loudest <= (1 - 10 ** (-3 / 20)) * loudest
        assert (distance[dominated] < 3 + 1e-6).all()
        distances.append(distance[causes.max(axis=0) > 0])
    assert (np.concatenate(distances) < 3).mean() > 0.7
    assert (np.concatenate(distances) < 6).mean() > 0.9


def test_synthesised_phonemes_differ():
    """Each is at least 6 dB louder than all others somewhere, at one point in two hundred or more."""
    phonemes = make_phoneme_mixtures(1)
    for k in range(6):
        others = np.delete(phonemes.causes, k, axis=0).max(axis=0)
        assert (phonemes.causes[k] > others + 6 / DECIBELS_PER_UNIT).mean() > 0.005
    correlation = np.corrcoef(phonemes.causes) - np.eye(6)
    assert correlation[:3].max() < 0.85  # vowels share low harmonics
    assert correlation[3:].max() < 0.6
    vowels, plosives = phonemes.causes[:3].reshape(3, 50, 9), phonemes.causes[3:].reshape(3, 50, 9)
    assert (vowels.max(axis=1) > 6).all()  # vowels last
    assert (plosives[:, :, -1].max(axis=1) < plosives.max(axis=(1, 2)) - 12 / DECIBELS_PER_UNIT).all()  # plosives fade
    # Places of articulation by the mean log frequency, weighted by power: labial low, velar between, alveolar high.
    power = (10 ** (plosives * DECIBELS_PER_UNIT / 10)).sum(axis=2)
    velar, alveolar, labial = np.exp(power @ np.log(FREQUENCIES) / power.sum(axis=1))
    assert labial < velar < alveolar
    _, highest, lowest = FREQUENCIES[plosives.max(axis=2).argmax(axis=1)]
    assert lowest < 1000 < 2500 < highest
    # As in recordings, a plosive's log-spectrogram holds nearly as much as a vowel's.
    assert phonemes.causes[3:].sum(axis=1).min() > 0.75 * phonemes.causes[:3].sum(axis=1).max()


def test_phonemes_repeat_and_vary_with_the_seed():
    one, same, other = (make_phoneme_mixtures(50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.data, same.data)
    assert (one.states != other.states).any()
    np.testing.assert_array_equal(one.causes, other.causes)  # one scale, whatever is drawn


def test_average_number_of_phonemes_is_two(seed):
    """Mean of 5000 × 6 Bernoulli draws: 5 standard errors are 0.082, a false alarm in 2e6 seeds."""
    assert make_phoneme_mixtures(5000, random_state=seed).states.sum(axis=1).mean() == pytest.approx(2, abs=0.085)
    rates = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 1.0])
    states = make_phoneme_mixtures(5000, activity=rates, random_state=seed).states
    np.testing.assert_allclose(states.mean(axis=0), rates, atol=0.036)


def test_sounds_are_cut_or_padded():
    phonemes = make_phoneme_mixtures(1, waveforms=[tone(500, 1300), tone(500, 350)])
    np.testing.assert_allclose(phonemes.waveforms[0], np.sqrt(2) * tone(500), atol=1e-6)
    assert (phonemes.waveforms[1, 350:] == 0).all()
    assert (phonemes.causes[1].reshape(50, 9)[:, 4:] == 0).all()
    np.testing.assert_allclose((phonemes.waveforms**2).mean(axis=1), 1)


@pytest.fixture
def sounds(tmp_path):
    """One tone as 16-bit at 8 kHz, 8-bit at 8 kHz, and 16-bit at 16 kHz."""
    folder = tmp_path / "sounds"
    folder.mkdir()
    wavfile.write(folder / "a.wav", RATE, (20_000 * tone(700)).astype(np.int16))
    wavfile.write(folder / "b.wav", RATE, np.round(128 + 100 * tone(700)).astype(np.uint8))
    wavfile.write(folder / "c.WAV", 2 * RATE, (20_000 * tone(700, 2000, 2 * RATE)).astype(np.int16))
    (folder / "readme.txt").write_text("not a sound")
    return folder


def test_sounds_from_files(sounds, monkeypatch):
    phonemes = make_phoneme_mixtures(5, waveforms=sounds, random_state=0)
    assert phonemes.names == ["a", "b", "c"]
    for wave in phonemes.waveforms:  # apart from the ends, where resampling rings
        np.testing.assert_allclose(wave[50:-50], np.sqrt(2) * tone(700)[50:-50], atol=0.03)
    chosen = [str(sounds / "c.WAV"), sounds / "a.wav", tone(100)]
    assert make_phoneme_mixtures(1, waveforms=chosen).names == ["c", "a", "2"]
    assert make_phoneme_mixtures(1, waveforms=str(sounds / "[ab].wav")).names == ["a", "b"]
    assert make_phoneme_mixtures(1, waveforms=sounds.parent).names == ["a", "b", "c"]  # subfolders too
    monkeypatch.setenv("MULTICAUSE_DATA", str(sounds.parent))
    np.testing.assert_array_equal(make_phoneme_mixtures(1, waveforms="sounds").waveforms, phonemes.waveforms)


def test_bad_sounds(sounds, tmp_path, monkeypatch):
    monkeypatch.delenv("MULTICAUSE_DATA", raising=False)
    wavfile.write(tmp_path / "stereo.wav", RATE, np.zeros((100, 2), np.int16))
    (tmp_path / "text.wav").write_text("not a sound")
    (tmp_path / "empty").mkdir()
    for arguments, error, message in [
        ({"n_samples": 0}, ValueError, "n_samples must be a whole number of at least 1; got 0"),
        ({"activity": 0.0}, ValueError, r"Probabilities of phonemes must lie in \(0, 1\]"),
        ({"activity": 1.5}, ValueError, "Check activity"),
        ({"activity": [0.1, np.nan, 0.1, 0.1, 0.1, 0.1]}, ValueError, "Probabilities of phonemes"),
        ({"activity": [0.1, 0.2]}, ValueError, r"one per phoneme, shape \(6,\); got \(2,\)"),
        ({"waveforms": []}, ValueError, "waveforms is empty"),
        ({"waveforms": tmp_path / "empty"}, ValueError, "No wav file in .*Expected a folder of wav files"),
        ({"waveforms": sounds / "z*.wav"}, ValueError, "No wav file"),
        ({"waveforms": tmp_path / "nowhere"}, FileNotFoundError, "There is no"),
        ({"waveforms": "nowhere"}, FileNotFoundError, r"nor below MULTICAUSE_DATA \(not set\)"),
        (
            {"waveforms": [tmp_path / "stereo.wav"]},
            ValueError,
            "has 2 channels; expected one. Average them",
        ),
        ({"waveforms": [tmp_path / "text.wav"]}, ValueError, "cannot be read as a wav file"),
        ({"waveforms": [np.ones((2, 100))]}, ValueError, r"must have one axis, time; got shape \(2, 100\)"),
        ({"waveforms": tone(100)}, ValueError, r"must have one axis, time; got shape \(\)"),
        ({"waveforms": [tone(100), np.full(9, np.inf)]}, ValueError, "Waveform '1' has samples that are NaN or inf"),
        ({"waveforms": [np.append(np.zeros(1000), 1)]}, ValueError, "silent in its first 1000 samples"),
        ({"waveforms": [np.ones(9, complex)]}, ValueError, "must hold real numbers; got dtype complex128"),
    ]:
        with pytest.raises(error, match=message):
            make_phoneme_mixtures(**arguments)


@pytest.fixture
def picture():
    return np.random.RandomState(0).gamma(2.0, 100.0, size=(30, 40))


def test_patches_are_pieces_of_the_image(picture):
    patches = make_patches(picture, 200, shape=(4, 6), random_state=0)
    assert patches.data.shape == (200, 24)
    assert patches.image_shape == (4, 6)
    expected = 10 * (picture - picture.min()) / np.ptp(picture)
    np.testing.assert_allclose(patches.image, expected)
    for patch, (row, column) in zip(patches.data, patches.positions, strict=True):
        np.testing.assert_array_equal(patch.reshape(4, 6), patches.image[row : row + 4, column : column + 6])


def test_patches_come_from_everywhere(seed):
    """A 3×3 image has four 2×2 patches; that one is missing in 200 has probability 4e-25."""
    patches = make_patches(np.arange(9).reshape(3, 3), 200, shape=(2, 2), random_state=seed)
    assert set(map(tuple, patches.positions)) == {(0, 0), (0, 1), (1, 0), (1, 1)}
    whole = make_patches(np.arange(9).reshape(3, 3), 1, shape=(3, 3), scale=4)
    np.testing.assert_allclose(whole.data, [np.arange(9) / 2])


def test_patches_repeat_and_vary_with_the_seed(picture):
    one, same, other = (make_patches(picture, 50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.data, same.data)
    assert (one.positions != other.positions).any()


def test_images_from_files(picture, tmp_path, monkeypatch):
    skimage_io = pytest.importorskip("skimage.io", reason="scikit-image is not installed")
    pixels = picture.astype(np.uint16)
    np.save(tmp_path / "image.npy", pixels)
    np.savez(tmp_path / "image.npz", x=pixels)
    skimage_io.imsave(tmp_path / "image.png", pixels, check_contrast=False)
    skimage_io.imsave(tmp_path / "image.tif", pixels, check_contrast=False)
    expected = make_patches(pixels, 5, random_state=0).data
    for kind in ("npy", "npz", "png", "tif"):
        np.testing.assert_array_equal(make_patches(tmp_path / f"image.{kind}", 5, random_state=0).data, expected)
    raw = np.arange(1024 * 1536).reshape(1024, 1536) % 4096
    raw.astype(">u2").tofile(tmp_path / "imk02338.iml")
    monkeypatch.setenv("MULTICAUSE_DATA", str(tmp_path))
    np.testing.assert_allclose(make_patches("imk02338.iml", 5).image, raw / 409.5)


def test_default_image_needs_no_network(monkeypatch):
    pytest.importorskip("skimage", reason="scikit-image is not installed")

    def refuse(*arguments):
        raise AssertionError("a network connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    patches = make_patches(random_state=0)
    assert patches.data.shape == (5000, 100)
    assert patches.image.shape == (512, 512)
    assert (patches.image.min(), patches.image.max()) == (0, 10)


def test_bad_images(picture, tmp_path):
    np.savez(tmp_path / "two.npz", x=picture, y=picture)
    (tmp_path / "short.iml").write_bytes(b"1234")
    hole = np.where(picture == picture.max(), np.nan, picture)
    for image, arguments, error, message in [
        (picture, {"n_samples": 0}, ValueError, "n_samples must be a whole number of at least 1; got 0"),
        (picture, {"scale": -1.0}, ValueError, "scale must be a positive number; got -1.0"),
        (picture, {"shape": (31, 10)}, ValueError, "A patch of 31×10 does not fit into the image of 30×40"),
        (picture, {"shape": (0, 10)}, ValueError, "Each side of shape must be a whole number of at least 1; got 0"),
        (picture, {"shape": 10}, ValueError, "shape must be the height and width of a patch"),
        (np.ones((5, 5)), {"shape": (2, 2)}, ValueError, "image is constant, all pixels are 1"),
        (np.ones((0, 5)), {}, ValueError, "image has no pixels"),
        (hole, {}, ValueError, "1 pixels that are NaN or infinite"),
        (np.ones((20, 20, 3)), {}, ValueError, r"two axes.*got shape \(20, 20, 3\). Average the channels"),
        (picture.astype(complex), {}, ValueError, "must hold real numbers; got dtype complex128"),
        (tmp_path / "two.npz", {}, ValueError, r"holds 2 arrays \(x, y\); expected one"),
        (tmp_path / "short.iml", {}, ValueError, "has 2 pixels; an image of the van Hateren database has 1024 × 1536"),
        (tmp_path / "nowhere.png", {}, FileNotFoundError, "There is no"),
    ]:
        with pytest.raises(error, match=message):
            make_patches(image, **arguments)


def test_without_scikit_image_the_error_says_what_to_install(monkeypatch, picture):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ImportError, match=r"pip install 'multicause\[images\]', or pass the image as an array"):
        make_patches()
    assert make_patches(picture, 3).data.shape == (3, 100)
