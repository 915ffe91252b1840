// Command stages prints the configuration with which kwok plays nodes and pods
// as fast as it can: its own stages of that name. Heartbeats are not among
// them, since nothing in the lab looks for them.
package main

import (
	"fmt"

	node "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	pod "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

func main() {
	for _, stage := range []string{
		node.DefaultNodeInit, pod.DefaultPodReady, pod.DefaultPodComplete, pod.DefaultPodDelete,
	} {
		fmt.Printf("---\n%s\n", stage)
	}
}
