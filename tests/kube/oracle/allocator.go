// Which devices Kubernetes' own allocator gives to claims: an oracle for src/kube/scheduler/claims.
//
// Reads lines of JSON, each the devices of a small cluster and questions about them:
//
//	{"nodes": [], "slices": [], "classes": [], "taintRules": [], "allocated": [], "asked": [{"node": "n0", "claims": []}],
//	 "pods": [{"pod": {}, "resources": []}]}
//
// and answers each with a line: for each question what the claims are given ("results"), that there is nothing ("none"), or why it gives
// up ("error"); and for each pod the claim for its extended resources.
//
//	{"answers": [{"results": []}], "pods": [{"requests": [], "mappings": []}]}
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"
	_ "unsafe"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	_ "k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

const limit = 5 * time.Second // for one question

type taintRule struct {
	Spec struct {
		DeviceSelector *struct{ Driver, Pool, Device *string }
		Taint          resourceapi.DeviceTaint
	}
}

type question struct {
	Node   string
	Claims []*resourceapi.ResourceClaim
}

type podQuestion struct {
	Pod       *v1.Pod
	Resources []v1.ResourceName
}

type cluster struct {
	Nodes      []*v1.Node
	Slices     []*resourceapi.ResourceSlice
	Classes    []*resourceapi.DeviceClass
	TaintRules []taintRule
	Allocated  []*resourceapi.ResourceClaim
	Asked      []question
	Pods       []podQuestion
}

type answer struct {
	Results []resourceapi.AllocationResult `json:"results,omitempty"`
	None    string                         `json:"none,omitempty"`
	Error   string                         `json:"error,omitempty"`
	Late    bool                           `json:"late,omitempty"`
}

type podAnswer struct {
	Requests []resourceapi.DeviceRequest           `json:"requests"`
	Mappings []v1.ContainerExtendedResourceRequest `json:"mappings"`
}

type answers struct {
	Answers []answer    `json:"answers"`
	Pods    []podAnswer `json:"pods"`
}

//go:linkname createRequestsAndMappings k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources.createRequestsAndMappings
func createRequestsAndMappings(*v1.Pod, map[v1.ResourceName]int64, klog.Logger, fwk.DeviceClassResolver) ([]resourceapi.DeviceRequest, []v1.ContainerExtendedResourceRequest)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

type classes map[string]*resourceapi.DeviceClass

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no class %s", name)
}

func (c classes) List() ([]*resourceapi.DeviceClass, error) {
	return nil, errors.New("nobody lists")
}

// Those that are on without anybody's doing.
func features() structured.Features {
	on := structured.Features{}
	for _, name := range []string{
		"AdminAccess", "ConsumableCapacity", "DeviceBindingAndStatus", "DeviceTaints", "FractionalCapacityRange", "PartitionableDevices",
		"PrioritizedList",
	} {
		if field := reflect.ValueOf(&on).Elem().FieldByName(name); field.IsValid() {
			field.SetBool(true)
		}
	}
	return on
}

func is(wanted *string, name string) bool {
	return wanted == nil || *wanted == name
}

func taint(slice *resourceapi.ResourceSlice, rules []taintRule) {
	for _, rule := range rules {
		selector := rule.Spec.DeviceSelector
		if selector == nil || !is(selector.Driver, slice.Spec.Driver) || !is(selector.Pool, slice.Spec.Pool.Name) {
			continue
		}
		for i := range slice.Spec.Devices {
			if device := &slice.Spec.Devices[i]; is(selector.Device, device.Name) {
				device.Taints = append(device.Taints, rule.Spec.Taint)
			}
		}
	}
}

func allocated(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

func ask(ctx context.Context, allocator structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) (said answer) {
	defer func() {
		if panicked := recover(); panicked != nil {
			said = answer{Error: fmt.Sprintf("panic: %v", panicked)}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	results, err := allocator.Allocate(ctx, node, claims)
	switch {
	case ctx.Err() != nil:
		return answer{Late: true}
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return answer{None: err.Error()}
	case err != nil:
		return answer{Error: err.Error()}
	case len(results) != len(claims):
		return answer{None: "cannot allocate all claims"}
	}
	return answer{Results: results}
}

func solve(ctx context.Context, line []byte, selectors *cel.Cache) []byte {
	given := &cluster{}
	must(json.Unmarshal(line, given))
	known := classes{}
	resources := extendedresourcecache.NewExtendedResourceCache(klog.FromContext(ctx))
	for _, class := range given.Classes {
		known[class.Name] = class
		resources.OnAdd(class, true)
	}
	for _, slice := range given.Slices {
		taint(slice, given.TaintRules)
	}
	nodes := map[string]*v1.Node{}
	for _, node := range given.Nodes {
		nodes[node.Name] = node
	}
	said := answers{Answers: []answer{}, Pods: []podAnswer{}}
	for _, asked := range given.Asked {
		// One each: its caches are of one state, and some versions keep in them what they gave up again.
		allocator, err := structured.NewAllocator(ctx, features(), allocated(given.Allocated), known, given.Slices, selectors)
		must(err)
		said.Answers = append(said.Answers, ask(ctx, allocator, nodes[asked.Node], asked.Claims))
	}
	for _, asked := range given.Pods {
		amounts := map[v1.ResourceName]int64{}
		for _, name := range asked.Resources {
			amounts[name] = 1
		}
		requests, mappings := createRequestsAndMappings(asked.Pod, amounts, klog.FromContext(ctx), resources)
		said.Pods = append(said.Pods, podAnswer{requests, mappings})
	}
	written, err := json.Marshal(said)
	must(err)
	return written
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	ctx := klog.NewContext(context.Background(), klog.NewKlogr())
	selectors := cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			_, err := output.Write(append(solve(ctx, line, selectors), '\n'))
			must(err)
		}
		if err != nil {
			break
		}
	}
	must(output.Flush())
}
