// Command controlplane is four programs in one file: the first argument says
// which one, the others are that program's own flags.
//
// They share most of their code, so that one binary links faster and takes a
// third of the space. kwok, a tool of this module, shares their packages too.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	program := ""
	if len(os.Args) > 1 {
		// Each program finds its name and flags where it would find them
		// in a binary of its own.
		os.Args = os.Args[1:]
		program = os.Args[0]
	}
	switch program {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "usage: controlplane etcd|kube-apiserver|kube-controller-manager|kube-scheduler [flag]...")
		os.Exit(2)
	}
}
