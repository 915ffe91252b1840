# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_kubectl_safe_drain_global_optspecs
    string join \n restart-stale allow-vm-down only-if-clear wait-blocked on-abort= parallel= no-input dry-run timeout= l/selector= pod-selector= force ignore-daemonsets delete-emptydir-data grace-period= disable-eviction skip-wait-for-delete-timeout= chunk-size= o/output= events-file= q/quiet color= v/v= h/help help-connection V/version kubeconfig= context= cluster= user= n/namespace= s/server= token= username= password= as= as-group= as-uid= as-user-extra= certificate-authority= client-certificate= client-key= insecure-skip-tls-verify tls-server-name= request-timeout=
end

function __fish_kubectl_safe_drain_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_kubectl_safe_drain_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_kubectl_safe_drain_using_subcommand
    set -l cmd (__fish_kubectl_safe_drain_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l on-abort -d 'when time is up or a signal comes: leave evacuations and cordon (default), or take them back (10s at most)' -r -f -a "leave\t''
cancel\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l parallel -d 'nodes at a time (default 1)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l timeout -d 'limit per node from its first write (default 30m)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s l -l selector -d 'drain the nodes with these labels' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l pod-selector -d 'touch only pods with these labels; the rest stays' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l grace-period -d 'time for each pod to stop; -1: its own (default)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l skip-wait-for-delete-timeout -d 'don\'t wait for pods terminating for longer' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l chunk-size -d 'page size of lists; 0: one page (default 100)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s o -l output -d 'print one document in place of lines and tables' -r -f -a "json\t''
yaml\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l events-file -d 'one JSON line per event; - is stdout, not with -o' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l color -d 'when to colour (default auto; honours NO_COLOR)' -r -f -a "auto\t''
always\t''
never\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s v -l v -d '1 plain lines, 4 debug, 6 each request (default 0)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l kubeconfig -d 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l context -d 'the kubeconfig context' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l cluster -d 'the kubeconfig cluster' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l user -d 'the kubeconfig user' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s n -l namespace -d 'the namespace; no effect on a drain' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s s -l server -d 'address of the API server' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l token -d 'bearer token' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l username -d 'user name for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l password -d 'password for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l as -d 'the user to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l as-group -d 'a group to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l as-uid -d 'the uid to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l as-user-extra -d 'an extra to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l certificate-authority -d 'certificates to trust the API server by' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l client-certificate -d 'client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l client-key -d 'key of the client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l tls-server-name -d 'the name that the certificate must carry' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l request-timeout -d 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l restart-stale -d 'restart VMs that block only for their old eviction strategy (not given: ask, or never off a terminal)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l allow-vm-down -d 'agree to VMs that do not run again by themselves'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l only-if-clear -d 'change nothing if anything would block (exit 4)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l wait-blocked -d 'wait till the timeout for what a human must clear'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l no-input -d 'never ask a question'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l dry-run -d 'preview: one pass, changes nothing, exit code of the drain; server also tries each eviction as a dry run'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l force -d 'also evict pods that no controller brings back'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l ignore-daemonsets -d 'leave DaemonSet pods (default); =false refuses'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l delete-emptydir-data -d 'agree to lose data in emptyDir, in VMs emptyDisk'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l disable-eviction -d 'delete pods, past their budgets; VMs are evicted'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s q -l quiet -d 'on stderr only warnings, questions and errors'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s h -l help -d 'this text'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l help-connection -d 'connection flags (--context, -n, --as ...)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -s V -l version -d 'the version'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -l insecure-skip-tls-verify -d 'don\'t check the API server\'s certificate'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -a "audit" -d 'which VMs would block a drain, restart, stay off or stay down, and which are stale'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -a "restart-stale" -d 'restart the stale VMs that a restart helps, outside a drain'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -a "cancel" -d 'undo a drain: cancel its evacuations, lift the cordon that it set'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_needs_command" -a "completion" -d 'print a completion script, or with kubectl the helper for kubectl\'s own completion'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s l -l selector -d 'only VMs with these labels' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s o -l output -d 'print one document in place of lines and tables' -r -f -a "json\t''
yaml\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l color -d 'when to colour (default auto; honours NO_COLOR)' -r -f -a "auto\t''
always\t''
never\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s v -l v -d '1 plain lines, 4 debug, 6 each request (default 0)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l kubeconfig -d 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l context -d 'the kubeconfig context' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l cluster -d 'the kubeconfig cluster' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l user -d 'the kubeconfig user' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s n -l namespace -d 'the namespace; no effect on a drain' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s s -l server -d 'address of the API server' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l token -d 'bearer token' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l username -d 'user name for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l password -d 'password for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l as -d 'the user to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l as-group -d 'a group to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l as-uid -d 'the uid to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l as-user-extra -d 'an extra to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l certificate-authority -d 'certificates to trust the API server by' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l client-certificate -d 'client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l client-key -d 'key of the client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l tls-server-name -d 'the name that the certificate must carry' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l request-timeout -d 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s A -l all-namespaces -d 'all namespaces (the default without -n)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s q -l quiet -d 'on stderr only warnings, questions and errors'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l detailed-exitcode -d 'exit 3 when something would block'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s h -l help -d 'this text'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l help-connection -d 'connection flags (--context, -n, --as ...)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -s V -l version -d 'the version'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand audit" -l insecure-skip-tls-verify -d 'don\'t check the API server\'s certificate'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s l -l selector -d 'only VMs with these labels' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l timeout -d 'limit for all of it (default 30m)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s o -l output -d 'print one document in place of lines and tables' -r -f -a "json\t''
yaml\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l events-file -d 'one JSON line per event; - is stdout, not with -o' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l color -d 'when to colour (default auto; honours NO_COLOR)' -r -f -a "auto\t''
always\t''
never\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s v -l v -d '1 plain lines, 4 debug, 6 each request (default 0)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l kubeconfig -d 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l context -d 'the kubeconfig context' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l cluster -d 'the kubeconfig cluster' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l user -d 'the kubeconfig user' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s n -l namespace -d 'the namespace; no effect on a drain' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s s -l server -d 'address of the API server' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l token -d 'bearer token' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l username -d 'user name for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l password -d 'password for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l as -d 'the user to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l as-group -d 'a group to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l as-uid -d 'the uid to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l as-user-extra -d 'an extra to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l certificate-authority -d 'certificates to trust the API server by' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l client-certificate -d 'client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l client-key -d 'key of the client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l tls-server-name -d 'the name that the certificate must carry' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l request-timeout -d 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s A -l all-namespaces -d 'all namespaces (the default without -n)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l dry-run -d 'say what would happen and change nothing'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l restart-stale -d 'consent to the restarts (not given: ask; refused off a terminal)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l allow-vm-down -d 'agree to VMs that will not run afterwards by themselves'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l delete-emptydir-data -d 'agree to lose data in emptyDisk and ephemeral volumes'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l no-input -d 'never ask a question'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s q -l quiet -d 'on stderr only warnings, questions and errors'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s h -l help -d 'this text'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l help-connection -d 'connection flags (--context, -n, --as ...)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -s V -l version -d 'the version'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand restart-stale" -l insecure-skip-tls-verify -d 'don\'t check the API server\'s certificate'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s o -l output -d 'print one document in place of lines and tables' -r -f -a "json\t''
yaml\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l events-file -d 'one JSON line per event; - is stdout, not with -o' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l color -d 'when to colour (default auto; honours NO_COLOR)' -r -f -a "auto\t''
always\t''
never\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s v -l v -d '1 plain lines, 4 debug, 6 each request (default 0)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l kubeconfig -d 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l context -d 'the kubeconfig context' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l cluster -d 'the kubeconfig cluster' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l user -d 'the kubeconfig user' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s n -l namespace -d 'the namespace; no effect on a drain' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s s -l server -d 'address of the API server' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l token -d 'bearer token' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l username -d 'user name for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l password -d 'password for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l as -d 'the user to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l as-group -d 'a group to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l as-uid -d 'the uid to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l as-user-extra -d 'an extra to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l certificate-authority -d 'certificates to trust the API server by' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l client-certificate -d 'client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l client-key -d 'key of the client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l tls-server-name -d 'the name that the certificate must carry' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l request-timeout -d 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l dry-run -d 'say what would happen and change nothing'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l no-input -d 'never ask a question'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s q -l quiet -d 'on stderr only warnings, questions and errors'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s h -l help -d 'this text'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l help-connection -d 'connection flags (--context, -n, --as ...)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -s V -l version -d 'the version'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand cancel" -l insecure-skip-tls-verify -d 'don\'t check the API server\'s certificate'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l color -d 'when to colour (default auto; honours NO_COLOR)' -r -f -a "auto\t''
always\t''
never\t''"
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -s v -l v -d '1 plain lines, 4 debug, 6 each request (default 0)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l kubeconfig -d 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l context -d 'the kubeconfig context' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l cluster -d 'the kubeconfig cluster' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l user -d 'the kubeconfig user' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -s n -l namespace -d 'the namespace; no effect on a drain' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -s s -l server -d 'address of the API server' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l token -d 'bearer token' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l username -d 'user name for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l password -d 'password for basic authentication' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l as -d 'the user to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l as-group -d 'a group to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l as-uid -d 'the uid to impersonate' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l as-user-extra -d 'an extra to impersonate; repeat it for more' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l certificate-authority -d 'certificates to trust the API server by' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l client-certificate -d 'client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l client-key -d 'key of the client certificate' -r -F
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l tls-server-name -d 'the name that the certificate must carry' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l request-timeout -d 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)' -r -f
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -s h -l help -d 'this text'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l help-connection -d 'connection flags (--context, -n, --as ...)'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -s V -l version -d 'the version'
complete -c kubectl-safe_drain -n "__fish_kubectl_safe_drain_using_subcommand completion" -l insecure-skip-tls-verify -d 'don\'t check the API server\'s certificate'
