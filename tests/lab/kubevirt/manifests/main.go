// Command manifests prints what KubeVirt's operator would install for virt-api
// and virt-controller, one JSON object a line. The operator itself is not run:
// it would want to start them as pods.
//
//	manifests kinds CA_FILE           definitions, roles and what else the programs need
//	manifests endpoints CA_FILE PORT  what calls virt-api, which is at PORT of localhost
//	manifests status                  the status of the KubeVirt object, as a merge patch
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/components"
	"kubevirt.io/kubevirt/pkg/virt-operator/resource/generate/rbac"
)

const namespace = "kubevirt"

var definitions = []func() (*extensions.CustomResourceDefinition, error){
	components.NewKubeVirtCrd,
	components.NewVirtualMachineCrd,
	components.NewVirtualMachineInstanceCrd,
	components.NewVirtualMachineInstanceMigrationCrd,
	components.NewReplicaSetCrd,
	components.NewVirtualMachinePoolCrd,
	components.NewPresetCrd,
	components.NewMigrationPolicyCrd,
	components.NewVirtualMachineInstancetypeCrd,
	components.NewVirtualMachineClusterInstancetypeCrd,
	components.NewVirtualMachinePreferenceCrd,
	components.NewVirtualMachineClusterPreferenceCrd,
	components.NewVirtualMachineSnapshotCrd,
	components.NewVirtualMachineSnapshotContentCrd,
	components.NewVirtualMachineRestoreCrd,
	components.NewVirtualMachineExportCrd,
	components.NewVirtualMachineCloneCrd,
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("manifests: ")
	what := ""
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	switch {
	case what == "kinds" && len(os.Args) == 3:
		ca, err := os.ReadFile(os.Args[2])
		must(err)
		printKinds(ca)
	case what == "endpoints" && len(os.Args) == 4:
		ca, err := os.ReadFile(os.Args[2])
		must(err)
		port, err := strconv.ParseInt(os.Args[3], 10, 32)
		must(err)
		printEndpoints(ca, int32(port))
	case what == "status" && len(os.Args) == 2:
		printStatus()
	default:
		log.Fatal("usage: manifests kinds CA_FILE | endpoints CA_FILE PORT | status")
	}
}

func printKinds(ca []byte) {
	emit(&core.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: meta.ObjectMeta{Name: namespace}})
	for _, define := range definitions {
		definition, err := define()
		must(err)
		definition.TypeMeta = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
		emit(definition)
	}
	for _, object := range rbac.GetAllCluster() {
		emit(object)
	}
	for _, object := range rbac.GetAllApiServer(namespace) {
		emit(object)
	}
	for _, object := range rbac.GetAllController(namespace) {
		emit(object)
	}

	// Where the operator publishes whom the parts of KubeVirt trust.
	emit(&core.ConfigMap{
		TypeMeta:   kind("v1", "ConfigMap"),
		ObjectMeta: meta.ObjectMeta{Name: "kubevirt-ca", Namespace: namespace},
		Data:       map[string]string{"ca-bundle": string(ca)},
	})
}

func printEndpoints(ca []byte, port int32) {
	// The API server reaches virt-api by a name: there is no network of pods.
	// An API service cannot be a URL, but its service can be another name.
	emit(&core.Service{
		TypeMeta:   kind("v1", "Service"),
		ObjectMeta: meta.ObjectMeta{Name: components.VirtApiServiceName, Namespace: namespace},
		Spec: core.ServiceSpec{
			Type:         core.ServiceTypeExternalName,
			ExternalName: "localhost",
			Ports:        []core.ServicePort{{Port: port}},
		},
	})
	for _, api := range components.NewVirtAPIAPIServices(namespace) {
		api.Spec.Service.Port = &port
		api.Spec.CABundle = ca
		emit(api)
	}

	at := func(client *admission.WebhookClientConfig) {
		url := fmt.Sprintf("https://localhost:%d%s", port, *client.Service.Path)
		client.Service, client.URL, client.CABundle = nil, &url, ca
	}
	mutating := components.NewVirtAPIMutatingWebhookConfiguration(namespace)
	for i := range mutating.Webhooks {
		at(&mutating.Webhooks[i].ClientConfig)
	}
	emit(mutating)
	validating := components.NewVirtAPIValidatingWebhookConfiguration(namespace)
	for i := range validating.Webhooks {
		at(&validating.Webhooks[i].ClientConfig)
	}
	emit(validating)
}

// printStatus says what the operator says once all is installed. While there
// is no phase, the configuration in the object does not count.
func printStatus() {
	version := kubeVirtVersion()
	emit(map[string]any{"status": map[string]any{
		"phase":                   "Deployed",
		"defaultArchitecture":     "amd64",
		"operatorVersion":         version,
		"observedKubeVirtVersion": version,
		"targetKubeVirtVersion":   version,
	}})
}

// kubeVirtVersion is the version of the module that this program is built
// with, so that go.mod is the only place which states it.
func kubeVirtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		log.Fatal("built without module information")
	}
	for _, module := range info.Deps {
		if module.Path == "kubevirt.io/kubevirt" {
			return module.Version
		}
	}
	log.Fatal("built without kubevirt.io/kubevirt")
	return ""
}

func kind(version, name string) meta.TypeMeta {
	return meta.TypeMeta{APIVersion: version, Kind: name}
}

func emit(object any) {
	must(json.NewEncoder(os.Stdout).Encode(object))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
