# shellcheck shell=bash
# Part of ./lab: what each part of a cluster runs, how it shows that it is there,
# and how it is started, supervised and stopped. $state is the state folder;
# $port_* come from its file "ports".
# shellcheck disable=SC2154

# Sets $command for a part of the control plane.
control_plane() {
  local program=$1
  shift
  if given "$program"; then
    command=("$KUBEBUILDER_ASSETS/$program" "$@")
  else
    command=("$state/bin/controlplane" "$program" "$@")
  fi
}

# Sets $command to what PART runs.
command_of() {
  local pki=$state/pki etcd=http://127.0.0.1:$port_etcd peer=http://127.0.0.1:$port_etcd_peer
  case $1 in
    etcd)
      # Nobody needs these data after a crash of the machine.
      control_plane etcd --unsafe-no-fsync --data-dir="$state/etcd" \
        --listen-client-urls="$etcd" --advertise-client-urls="$etcd" --listen-peer-urls="$peer" \
        --initial-advertise-peer-urls="$peer" --initial-cluster="default=$peer"
      ;;
    apiserver)
      # Off: ServiceAccount, which would want a token in each pod;
      # TaintNodesByCondition, since node lifecycle is off too (below); and the
      # reconciler of the service "kubernetes", which nobody uses here.
      control_plane kube-apiserver --etcd-servers="$etcd" \
        --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --secure-port="$port_apiserver" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --client-ca-file="$pki/ca.crt" --authorization-mode=RBAC \
        --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
        --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
        --requestheader-extra-headers-prefix=X-Remote-Extra- \
        --proxy-client-cert-file="$pki/front-proxy.crt" --proxy-client-key-file="$pki/front-proxy.key" \
        --service-cluster-ip-range=10.0.0.0/16 --endpoint-reconciler-type=none --allow-privileged=true \
        --disable-admission-plugins=ServiceAccount,TaintNodesByCondition --profiling=false
      ;;
    controllers)
      # Nobody renews the leases of played nodes: without the exceptions all
      # would be tainted and their pods evicted.
      local config=$state/controllers.kubeconfig
      control_plane kube-controller-manager --kubeconfig="$config" \
        --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
        --bind-address=127.0.0.1 --secure-port="$port_controllers" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" \
        --use-service-account-credentials --leader-elect=false --profiling=false \
        --controllers='*,-nodelifecycle,-taint-eviction-controller,-device-taint-eviction-controller'
      ;;
    scheduler)
      local config=$state/scheduler.kubeconfig
      control_plane kube-scheduler --kubeconfig="$config" \
        --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
        --bind-address=127.0.0.1 --secure-port="$port_scheduler" \
        --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
        --leader-elect=false --profiling=false
      ;;
    kwok)
      # Without leases: after a restart it would wait 40 s for its old ones.
      local program=$state/bin/kwok
      ! given kwok || program=$KUBEBUILDER_ASSETS/kwok
      command=("$program" --kubeconfig="$state/kwok.kubeconfig" --config="$state/kwok.yaml"
        --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake
        --node-lease-duration-seconds=0 --server-address="127.0.0.1:$port_kwok")
      ;;
    nodes)
      command=("$player" play --kubeconfig "$state/virt-controller.kubeconfig")
      ;;
    virt-api)
      command=(env POD_NAME=virt-api-0 POD_NAMESPACE=kubevirt "$state/bin/virt-api"
        --kubeconfig "$state/virt-api.kubeconfig" --listen 127.0.0.1 --port "$port_virt_api"
        --tls-cert-file "$pki/virt.crt" --tls-key-file "$pki/virt.key"
        --handler-cert-file "$pki/virt.crt" --handler-key-file "$pki/virt.key")
      ;;
    virt-controller)
      # The images are what it writes into pods; nobody pulls them.
      command=(env POD_NAME=virt-controller-0 POD_NAMESPACE=kubevirt "$state/bin/virt-controller"
        --kubeconfig "$state/virt-controller.kubeconfig" --listen 127.0.0.1 --port "$port_virt_controller"
        --prom-cert-file "$pki/virt.crt" --prom-key-file "$pki/virt.key"
        --launcher-image virt-launcher:lab --exporter-image virt-exportserver:lab)
      ;;
  esac
}

# get PATH [FLAG]...
get() { kubectl --kubeconfig="$state/admin.kubeconfig" --request-timeout=5s get --raw "$@" 2>/dev/null; }

# answers PART: whether it does its work.
answers() {
  local here=127.0.0.1
  case $1 in
    etcd) get /health --server="http://$here:$port_etcd" ;;
    apiserver) get /readyz ;;
    controllers) get /healthz --server="https://$here:$port_controllers" ;;
    scheduler) get /readyz --server="https://$here:$port_scheduler" ;;
    kwok) get /healthz --server="http://$here:$port_kwok" ;;
    nodes) [ -e "$state/nodes.pid" ] ;;
    virt-api-port) (: <"/dev/tcp/$here/$port_virt_api") 2>/dev/null ;;
    virt-api) get /apis/subresources.kubevirt.io/v1 ;;
    virt-controller)
      # Whether it is the leader. It ends connections from clients that have a
      # certificate; a token keeps kubectl from asking for a password.
      get /leader --server="https://$here:$port_virt_controller" --kubeconfig=/dev/null --token=none \
        --certificate-authority="$state/pki/ca.crt" | grep -q '"true"'
      ;;
  esac >/dev/null
}

# --- starting and stopping --------------------------------------------------

wait_for() {
  local part deadline
  for part; do
    deadline=$((SECONDS + 90))
    until answers "$part"; do
      if [ $SECONDS -ge $deadline ]; then
        say "$part does not answer; the end of its log:"
        tail -n 15 "$state/$part.log" >&2
        return 1
      fi
      sleep 0.1
    done
  done
}

# supervise PART COMMAND...: runs COMMAND again whenever it ends, as a cluster
# does with a pod; virt-controller counts on it, and ends itself when it loses
# its lease. The file PART.wanted is what keeps this going.
supervise() {
  local part=$1 code fd
  shift
  trap - EXIT HUP INT TERM
  # Who reads the output of 'lab up' or 'lab start' must see its end.
  for fd in {3..254}; do eval "exec $fd>&-"; done
  # Parts of KubeVirt leave folders there when they are killed.
  mkdir -p "$state/tmp"
  export TMPDIR=$state/tmp
  while [ -e "$state/$part.wanted" ]; do
    "$@" &
    echo $! >"$state/$part.pid"
    code=0
    wait $! || code=$?
    rm -f "$state/$part.pid"
    [ -e "$state/$part.wanted" ] || break
    echo "lab: $part ended with $code, starts again"
    sleep 1
  done
  rm -f "$state/$part.supervised"
}

launch() {
  local part command
  for part; do
    [ ! -e "$state/$part.supervised" ] || continue
    command_of "$part"
    # A process group of its own (set -m): Ctrl-C is for this script, not for
    # the parts. And it must not come between the files and the process.
    (
      trap : HUP INT TERM
      set -m
      touch "$state/$part.wanted" "$state/$part.supervised"
      supervise "$part" "${command[@]}" </dev/null >>"$state/$part.log" 2>&1 &
    )
  done
}

pid_of() { cat "$state/$1.pid" 2>/dev/null || true; }

# signal SIGNAL PART: to the process of that part.
signal() {
  local pid
  pid=$(pid_of "$2")
  [ -n "$pid" ] && kill -s "$1" "$pid" 2>/dev/null
}

# halt SIGNAL PART...: ends these parts, and returns when they are gone; 1 if
# one of them is not.
halt() {
  local signal=$1 part failed=
  shift
  for part; do rm -f "$state/$part.wanted"; done
  for part; do
    end_part "$signal" "$part" || failed=yes
  done
  [ -z "$failed" ]
}

end_part() { # SIGNAL PART
  local signal=$1 part=$2 tries pid told=
  for ((tries = 0; ; tries++)); do
    [ -e "$state/$part.supervised" ] || return 0
    # Long enough for most; kube-apiserver, which has stopped to listen by
    # then, would wait a minute for the watches of its clients.
    [ $tries -ne 60 ] || { signal=KILL told=; }
    [ $tries -lt 200 ] || { say "$part does not end"; return 1; }
    # Once per process: a second signal makes some end without order. A part
    # that was just starting again has another process.
    pid=$(pid_of "$part")
    if [ -n "$pid" ] && [ "$pid" != "$told" ]; then
      told=$pid
      kill -s "$signal" "$pid" 2>/dev/null || true
      kill -s CONT "$pid" 2>/dev/null || true
    fi
    sleep 0.05
  done
}
