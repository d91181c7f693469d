# A server for strangers, as an ordinary user: docker build -t surgery . && docker run -p 7860:7860 surgery
FROM python:3.12-slim

# Which build of torch is right depends on the machine: --build-arg TORCH=..., with --build-arg OPTIONS="--index-url ..." for another index.
ARG TORCH="torch==2.13.0"
ARG OPTIONS=""

ENV PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HF_HUB_OFFLINE=1 \
    MPLCONFIGDIR=/tmp/matplotlib

RUN useradd --create-home --uid 1000 surgeon
WORKDIR /app
COPY requirements.txt constraints.txt ./
RUN pip install ${OPTIONS} "${TORCH}" && pip install -r requirements.txt -c constraints.txt
COPY app.py bilingual.py ./
COPY surgery surgery
COPY models models
COPY workshop workshop
COPY ui ui

USER surgeon
EXPOSE 7860
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/', timeout=5)"]
CMD ["python", "app.py", "--public", "--host", "0.0.0.0", "--port", "7860"]
