# The server in a container, from a wheel that was built before:
#
#     make wheel && docker build --tag wordpiece-bert .
#     docker run --rm --publish 8000:8000 --volume "$PWD/models:/models:ro" wordpiece-bert name-of-a-folder
FROM python:3.13-slim

COPY dist/*.whl /wheels/
# First the wheel, from here alone, so that no package of this name in an index is taken; then what it needs.
RUN pip install --no-cache-dir --no-index --no-deps --find-links /wheels wordpiece-bert \
    && pip install --no-cache-dir 'wordpiece-bert[serve]' \
    && rm -r /wheels \
    && useradd --uid 10001 --no-create-home server

USER server
WORKDIR /models
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
ENTRYPOINT ["wordpiece-bert", "serve", "--host", "0.0.0.0", "--port", "8000"]
