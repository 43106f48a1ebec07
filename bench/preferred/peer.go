// Measures the choice of GPUs in NVIDIA's device plugin: what its GetPreferredAllocation does for every call, through the same
// functions of its library. Prints "SIZE SECONDS" for each size that is named, the median of as many calls as are named first.
package main

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
)

func choose(size int) (time.Duration, error) {
	begin := time.Now()
	devices, err := gpuallocator.NewDevices()
	if err != nil {
		return 0, err
	}
	uuids := []string{}
	for _, device := range devices {
		uuids = append(uuids, device.UUID)
	}
	available, err := devices.Filter(uuids)
	if err != nil {
		return 0, err
	}
	chosen := gpuallocator.NewBestEffortPolicy().Allocate(available, nil, size)
	if len(chosen) != size {
		return 0, fmt.Errorf("%d GPUs instead of %d", len(chosen), size)
	}
	return time.Since(begin), nil
}

func main() {
	calls, _ := strconv.Atoi(os.Args[1])
	for _, word := range os.Args[2:] {
		size, _ := strconv.Atoi(word)
		times := []time.Duration{}
		for i := 0; i < calls; i++ {
			took, err := choose(size)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			times = append(times, took)
		}
		sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
		fmt.Println(size, times[len(times)/2].Seconds())
	}
}
