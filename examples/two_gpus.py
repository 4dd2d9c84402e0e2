"""A matrix product and a reduction over two GPUs: each has half of the rows, and one number crosses at the end."""

from dlbridge import nd


def main(devices=("cuda:0", "cuda:1"), size=1024):
    """The sum of the product a @ b over both devices, and that of the first device alone."""
    a = nd.arange(size * size, dtype="float64", device=devices[0]).reshape(size, size) % 7
    b = nd.arange(size * size, dtype="float64", device=devices[0]).reshape(size, size) % 5
    halves = [half.to_device(device) for half, device in zip(nd.split(a, 2), devices, strict=True)]
    products = [half @ b.to_device(device) for half, device in zip(halves, devices, strict=True)]
    sums = [product.sum() for product in products]  # both devices are at work, and the host has not waited
    return float(sums[0] + sums[1].to_device(devices[0])), float((a @ b).sum())


if __name__ == "__main__":
    if nd.cuda.device_count() < 2:
        raise SystemExit(f"two GPUs are needed, and there are {nd.cuda.device_count()}")
    print(*main())
