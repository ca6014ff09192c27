"""An account on the stand-in for the Hub, and empty caches, as huggingface_hub finds them."""

from huggingface_hub import constants

from helpers.hub_uploads import TOKEN


def use_account(monkeypatch, url, home, token=TOKEN):
    """Point huggingface_hub at a server, with empty caches in `home` and this token."""
    monkeypatch.setattr(constants, "ENDPOINT", url)
    template = url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(home / "assets"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
    # Which the stand-in cannot speak.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    if token is None:
        monkeypatch.delenv("HF_TOKEN", raising=False)
    else:
        monkeypatch.setenv("HF_TOKEN", token)
