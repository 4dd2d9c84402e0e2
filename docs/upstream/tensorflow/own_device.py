"""__dlpack__(dl_device=) of the tensor's own device is refused. Exit status 0: as reported; 1: gone."""

import sys

import tensorflow as tf

tensor = tf.constant([1.0])
try:
    tensor.__dlpack__(dl_device=tensor.__dlpack_device__())
except RuntimeError as error:
    print("RuntimeError:", error)
else:
    sys.exit("gone: exported")
print("as reported: refused")
