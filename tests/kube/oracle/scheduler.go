// Which nodes kube-scheduler's own plugins let a pod run on: an oracle for the predicates of src/kube/scheduler.
//
// Reads lines of JSON, each a cluster with the pods that are to be placed on it:
//
//	{"nodes": [], "pods": [], "namespaces": [], "claims": [], "volumes": [], "storageClasses": [], "csiNodes": [], "csiDrivers": [],
//	 "capacities": [], "incoming": []}
//
// and answers each with a line: for every incoming pod, by plugin, what it says against each node that it refuses. What it says before
// it looks at any node stands under "*".
//
//	[{"TaintToleration": {"node-1": ["node(s) had untolerated taint(s)"]}, "VolumeBinding": {"*": ["…"]}}]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

var asked = []string{
	"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions",
	"NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "NodeDeclaredFeatures",
}

type cluster struct {
	Nodes          []*v1.Node
	Pods           []*v1.Pod
	Namespaces     []*v1.Namespace
	Claims         []*v1.PersistentVolumeClaim
	Volumes        []*v1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	CSINodes       []*storagev1.CSINode
	CSIDrivers     []*storagev1.CSIDriver
	Capacities     []*storagev1.CSIStorageCapacity
	Incoming       []*v1.Pod
}

// By plugin, by node ("*": all of them): the reasons.
type answer map[string]map[string][]string

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// The default profile of this version of kube-scheduler, with the plugins that are asked.
func profile() *config.KubeSchedulerProfile {
	versioned := &configv1.KubeSchedulerConfiguration{}
	versioned.SetGroupVersionKind(configv1.SchemeGroupVersion.WithKind("KubeSchedulerConfiguration"))
	scheme.Scheme.Default(versioned)
	internal := &config.KubeSchedulerConfiguration{}
	must(scheme.Scheme.Convert(versioned, internal, nil))
	enabled := map[string]bool{}
	for _, plugin := range internal.Profiles[0].Plugins.MultiPoint.Enabled {
		enabled[plugin.Name] = true
	}
	made := &config.KubeSchedulerProfile{SchedulerName: "oracle", Plugins: &config.Plugins{}, PluginConfig: internal.Profiles[0].PluginConfig}
	made.Plugins.QueueSort.Enabled = []config.Plugin{{Name: "PrioritySort"}}
	made.Plugins.Bind.Enabled = []config.Plugin{{Name: "DefaultBinder"}}
	for _, name := range asked {
		if !enabled[name] {
			must(fmt.Errorf("the plugin %s is not among the defaults", name))
		}
		made.Plugins.Filter.Enabled = append(made.Plugins.Filter.Enabled, config.Plugin{Name: name})
	}
	return made
}

func add[T any](informer interface{ Add(any) error }, objects []T) {
	for _, object := range objects {
		must(informer.Add(object))
	}
}

// The plugins, as they see that cluster, and its nodes.
func load(ctx context.Context, given *cluster) (map[string]fwk.Plugin, []fwk.NodeInfo) {
	client := clientfake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	add(core.Namespaces().Informer().GetIndexer(), given.Namespaces)
	add(core.PersistentVolumeClaims().Informer().GetIndexer(), given.Claims)
	add(storage.StorageClasses().Informer().GetIndexer(), given.StorageClasses)
	add(storage.CSINodes().Informer().GetIndexer(), given.CSINodes)
	add(storage.CSIDrivers().Informer().GetIndexer(), given.CSIDrivers)
	add(storage.CSIStorageCapacities().Informer().GetIndexer(), given.Capacities)
	known := map[string]bool{}
	for _, node := range given.Nodes {
		known[node.Name] = true
	}
	assigned := []*v1.Pod{} // what the scheduler sees of its cache
	for _, pod := range given.Pods {
		if known[pod.Spec.NodeName] && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			assigned = append(assigned, pod)
		}
	}
	snapshot := cache.NewSnapshot(assigned, given.Nodes)
	made := map[string]fwk.Plugin{}
	registry := frameworkruntime.Registry{}
	for name, factory := range plugins.NewInTreeRegistry() {
		registry[name] = func(ctx context.Context, arguments runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := factory(ctx, arguments, handle)
			made[name] = plugin
			return plugin, err
		}
	}
	_, err := frameworkruntime.NewFramework(ctx, registry, profile(), frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithClientSet(client), frameworkruntime.WithParallelism(1),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(storage.CSINodes().Lister())))
	must(err)
	add(core.PersistentVolumes().Informer().GetIndexer(), given.Volumes) // now that it has its indices
	nodes, err := snapshot.NodeInfos().List()
	must(err)
	return made, nodes
}

func ask(ctx context.Context, plugin fwk.Plugin, pod *v1.Pod, nodes []fwk.NodeInfo) map[string][]string {
	refused := map[string][]string{}
	state := framework.NewCycleState()
	var only *fwk.PreFilterResult
	if first, ok := plugin.(fwk.PreFilterPlugin); ok {
		result, status := first.PreFilter(ctx, state, pod, nodes)
		if status.IsSkip() {
			return refused
		}
		if !status.IsSuccess() {
			refused["*"] = status.Reasons()
			return refused
		}
		only = result
	}
	filter, ok := plugin.(fwk.FilterPlugin)
	if !ok {
		return refused
	}
	for _, node := range nodes {
		name := node.Node().Name
		if only != nil && !only.AllNodes() && !only.NodeNames.Has(name) {
			refused[name] = []string{"left out before"}
		} else if status := filter.Filter(ctx, state, pod, node); !status.IsSuccess() {
			refused[name] = status.Reasons()
		}
	}
	return refused
}

func solve(ctx context.Context, line []byte) []byte {
	given := &cluster{}
	must(json.Unmarshal(line, given))
	made, nodes := load(ctx, given)
	answers := []answer{}
	for _, pod := range given.Incoming {
		one := answer{}
		for _, name := range asked {
			if refused := ask(ctx, made[name], pod, nodes); len(refused) > 0 {
				one[name] = refused
			}
		}
		answers = append(answers, one)
	}
	written, err := json.Marshal(answers)
	must(err)
	return written
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	metrics.Register()
	ctx := klog.NewContext(context.Background(), klog.NewKlogr())
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := bufio.NewWriter(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if len(line) > 1 {
			written := solve(ctx, line)
			_, err := output.Write(append(written, '\n'))
			must(err)
		}
		if err != nil {
			break
		}
	}
	must(output.Flush())
}
