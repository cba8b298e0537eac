from __future__ import annotations

from serve_app.weights.samples import sample_photos

NAMES = {
    *(f"person_{who}_{number}.jpg" for who in "ab" for number in (1, 2)),
    *(f"impostor_{n}.jpg" for n in (1, 2)),
}


def test_the_sample_photos_lie_in_one_folder_with_their_credits(photos):
    assert {path.name for path in photos.iterdir()} == {*NAMES, "CREDITS.md"}
    credits = (photos / "CREDITS.md").read_text(encoding="utf-8")
    assert all(name in credits for name in NAMES)


def test_photos_that_are_there_need_no_archive(photos, index, tmp_path):
    # The index is empty, so a download would fail.
    cache = tmp_path / "cache"
    (cache / "photos").mkdir(parents=True)
    (cache / "photos" / photos.name).symlink_to(photos)
    assert {path.name for path in sample_photos(cache, None).iterdir()} >= NAMES
