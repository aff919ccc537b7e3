"""Columns of numbers for other libraries, where they lie."""

_CPU, _CUDA = (1, 0), 2  # DLPack's numbers of devices


class Array:
    """A column of numbers, in host memory or on a GPU, that other libraries take without a copy.

    On the host it has `__dlpack__`; on a GPU also `__cuda_array_interface__` (version 3). Nothing of
    it is being computed any more: a consumer's stream waits for nothing, and none is named. Whoever
    takes it keeps the memory.
    """

    def __init__(self, result, column: int, mask: bool, on_device: bool):
        self._result, self._column, self._mask = result, column, mask
        get = result.mask if mask else result.numbers
        self._get = lambda on_device: get(column, on_device)
        self._array, self._address, self._type = self._get(on_device)

    def __len__(self) -> int:
        return self._result.rows

    @property
    def __cuda_array_interface__(self) -> dict:
        """On a GPU only: what CuPy, PyTorch (torch.as_tensor) and Numba ask for."""
        if self._address is None:
            raise AttributeError("this array is in host memory: it has __dlpack__")
        return {
            "shape": (len(self),),
            "typestr": self._type,
            "data": (self._address, False),
            "strides": None,
            "version": 3,
            "stream": None,  # complete
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Kind and number of the device: (1, 0) is the host, (2, n) the GPU n."""
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None) -> object:
        """A capsule of DLPack. `stream` is the consumer's, and has nothing to wait for; `dl_device`
        (1, 0) brings a GPU's array to the host."""
        own = self.__dlpack_device__()
        if own[0] == _CUDA and stream is not None and (stream < -1 or stream == 0):
            raise ValueError(f"a stream of CUDA's is None, -1, 1, 2 or a handle, not {stream}")
        array = self._array
        if dl_device is not None and tuple(dl_device) != own:
            if tuple(dl_device) != _CPU or copy is False:
                raise BufferError(f"the array is on device {own}, and not moved to {dl_device}")
            array, copy = self._get(False)[0], None  # another memory than the GPU's
        if copy:
            raise BufferError("an array of a result is not copied: copy it once you have it")
        return array.__dlpack__(max_version=max_version)

    def __repr__(self) -> str:
        kind = "host" if self._address is None else f"cuda:{self.__dlpack_device__()[1]}"
        return f"<rndn.Array of {len(self)} {self._type} on {kind}>"
