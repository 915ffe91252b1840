
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'kubectl-safe_drain' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'kubectl-safe_drain'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'kubectl-safe_drain' {
            [CompletionResult]::new('--on-abort', '--on-abort', [CompletionResultType]::ParameterName, 'when time is up or a signal comes: leave evacuations and cordon, or take them back (10s at most)')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'nodes at a time (default 1)')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'limit per node from its first write (default 30m)')
            [CompletionResult]::new('-l', '-l', [CompletionResultType]::ParameterName, 'drain the nodes with these labels')
            [CompletionResult]::new('--selector', '--selector', [CompletionResultType]::ParameterName, 'drain the nodes with these labels')
            [CompletionResult]::new('--pod-selector', '--pod-selector', [CompletionResultType]::ParameterName, 'touch only pods with these labels; the rest stays')
            [CompletionResult]::new('--grace-period', '--grace-period', [CompletionResultType]::ParameterName, 'time for each pod to stop; -1: its own (default)')
            [CompletionResult]::new('--skip-wait-for-delete-timeout', '--skip-wait-for-delete-timeout', [CompletionResultType]::ParameterName, 'don''t wait for pods terminating for longer')
            [CompletionResult]::new('--chunk-size', '--chunk-size', [CompletionResultType]::ParameterName, 'page size of lists; 0: one page (default 100)')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'print one document in place of lines and tables')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'print one document in place of lines and tables')
            [CompletionResult]::new('--events-file', '--events-file', [CompletionResultType]::ParameterName, 'one JSON line per event; - is stdout, not with -o')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'when to colour (default auto; honours NO_COLOR)')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--v', '--v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'the kubeconfig context')
            [CompletionResult]::new('--cluster', '--cluster', [CompletionResultType]::ParameterName, 'the kubeconfig cluster')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'the kubeconfig user')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--token', '--token', [CompletionResultType]::ParameterName, 'bearer token')
            [CompletionResult]::new('--username', '--username', [CompletionResultType]::ParameterName, 'user name for basic authentication')
            [CompletionResult]::new('--password', '--password', [CompletionResultType]::ParameterName, 'password for basic authentication')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'the user to impersonate')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'a group to impersonate; repeat it for more')
            [CompletionResult]::new('--as-uid', '--as-uid', [CompletionResultType]::ParameterName, 'the uid to impersonate')
            [CompletionResult]::new('--as-user-extra', '--as-user-extra', [CompletionResultType]::ParameterName, 'an extra to impersonate; repeat it for more')
            [CompletionResult]::new('--certificate-authority', '--certificate-authority', [CompletionResultType]::ParameterName, 'certificates to trust the API server by')
            [CompletionResult]::new('--client-certificate', '--client-certificate', [CompletionResultType]::ParameterName, 'client certificate')
            [CompletionResult]::new('--client-key', '--client-key', [CompletionResultType]::ParameterName, 'key of the client certificate')
            [CompletionResult]::new('--tls-server-name', '--tls-server-name', [CompletionResultType]::ParameterName, 'the name that the certificate must carry')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)')
            [CompletionResult]::new('--restart-stale', '--restart-stale', [CompletionResultType]::ParameterName, 'restart VMs that block only for their old eviction strategy (not given: ask, or never off a terminal)')
            [CompletionResult]::new('--allow-vm-down', '--allow-vm-down', [CompletionResultType]::ParameterName, 'agree to VMs that do not run again by themselves')
            [CompletionResult]::new('--only-if-clear', '--only-if-clear', [CompletionResultType]::ParameterName, 'change nothing if anything would block (exit 4)')
            [CompletionResult]::new('--wait-blocked', '--wait-blocked', [CompletionResultType]::ParameterName, 'wait till the timeout for what a human must clear')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'never ask a question')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'preview: one pass, changes nothing, exit code of the drain; server also tries each eviction as a dry run')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'also evict pods that no controller brings back')
            [CompletionResult]::new('--ignore-daemonsets', '--ignore-daemonsets', [CompletionResultType]::ParameterName, 'leave DaemonSet pods (default); =false refuses')
            [CompletionResult]::new('--delete-emptydir-data', '--delete-emptydir-data', [CompletionResultType]::ParameterName, 'agree to lose data in emptyDir, in VMs emptyDisk')
            [CompletionResult]::new('--disable-eviction', '--disable-eviction', [CompletionResultType]::ParameterName, 'delete pods, past their budgets; VMs are evicted')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'on stderr only warnings, questions and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'on stderr only warnings, questions and errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help-connection', '--help-connection', [CompletionResultType]::ParameterName, 'connection flags (--context, -n, --as ...)')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--insecure-skip-tls-verify', '--insecure-skip-tls-verify', [CompletionResultType]::ParameterName, 'don''t check the API server''s certificate')
            [CompletionResult]::new('cancel', 'cancel', [CompletionResultType]::ParameterValue, 'undo a drain: cancel its evacuations, lift the cordon that it set')
            [CompletionResult]::new('completion', 'completion', [CompletionResultType]::ParameterValue, 'print a completion script, or with kubectl the helper for kubectl''s own completion')
            break
        }
        'kubectl-safe_drain;cancel' {
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'print one document in place of lines and tables')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'print one document in place of lines and tables')
            [CompletionResult]::new('--events-file', '--events-file', [CompletionResultType]::ParameterName, 'one JSON line per event; - is stdout, not with -o')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'when to colour (default auto; honours NO_COLOR)')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--v', '--v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'the kubeconfig context')
            [CompletionResult]::new('--cluster', '--cluster', [CompletionResultType]::ParameterName, 'the kubeconfig cluster')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'the kubeconfig user')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--token', '--token', [CompletionResultType]::ParameterName, 'bearer token')
            [CompletionResult]::new('--username', '--username', [CompletionResultType]::ParameterName, 'user name for basic authentication')
            [CompletionResult]::new('--password', '--password', [CompletionResultType]::ParameterName, 'password for basic authentication')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'the user to impersonate')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'a group to impersonate; repeat it for more')
            [CompletionResult]::new('--as-uid', '--as-uid', [CompletionResultType]::ParameterName, 'the uid to impersonate')
            [CompletionResult]::new('--as-user-extra', '--as-user-extra', [CompletionResultType]::ParameterName, 'an extra to impersonate; repeat it for more')
            [CompletionResult]::new('--certificate-authority', '--certificate-authority', [CompletionResultType]::ParameterName, 'certificates to trust the API server by')
            [CompletionResult]::new('--client-certificate', '--client-certificate', [CompletionResultType]::ParameterName, 'client certificate')
            [CompletionResult]::new('--client-key', '--client-key', [CompletionResultType]::ParameterName, 'key of the client certificate')
            [CompletionResult]::new('--tls-server-name', '--tls-server-name', [CompletionResultType]::ParameterName, 'the name that the certificate must carry')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)')
            [CompletionResult]::new('--dry-run', '--dry-run', [CompletionResultType]::ParameterName, 'say what would happen and change nothing')
            [CompletionResult]::new('--no-input', '--no-input', [CompletionResultType]::ParameterName, 'never ask a question')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'on stderr only warnings, questions and errors')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'on stderr only warnings, questions and errors')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help-connection', '--help-connection', [CompletionResultType]::ParameterName, 'connection flags (--context, -n, --as ...)')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--insecure-skip-tls-verify', '--insecure-skip-tls-verify', [CompletionResultType]::ParameterName, 'don''t check the API server''s certificate')
            break
        }
        'kubectl-safe_drain;completion' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'when to colour (default auto; honours NO_COLOR)')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--v', '--v', [CompletionResultType]::ParameterName, '1 plain lines, 4 debug, 6 each request (default 0)')
            [CompletionResult]::new('--kubeconfig', '--kubeconfig', [CompletionResultType]::ParameterName, 'the kubeconfig file (else $KUBECONFIG, ~/.kube/config)')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'the kubeconfig context')
            [CompletionResult]::new('--cluster', '--cluster', [CompletionResultType]::ParameterName, 'the kubeconfig cluster')
            [CompletionResult]::new('--user', '--user', [CompletionResultType]::ParameterName, 'the kubeconfig user')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('--namespace', '--namespace', [CompletionResultType]::ParameterName, 'the namespace; no effect on a drain')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--server', '--server', [CompletionResultType]::ParameterName, 'address of the API server')
            [CompletionResult]::new('--token', '--token', [CompletionResultType]::ParameterName, 'bearer token')
            [CompletionResult]::new('--username', '--username', [CompletionResultType]::ParameterName, 'user name for basic authentication')
            [CompletionResult]::new('--password', '--password', [CompletionResultType]::ParameterName, 'password for basic authentication')
            [CompletionResult]::new('--as', '--as', [CompletionResultType]::ParameterName, 'the user to impersonate')
            [CompletionResult]::new('--as-group', '--as-group', [CompletionResultType]::ParameterName, 'a group to impersonate; repeat it for more')
            [CompletionResult]::new('--as-uid', '--as-uid', [CompletionResultType]::ParameterName, 'the uid to impersonate')
            [CompletionResult]::new('--as-user-extra', '--as-user-extra', [CompletionResultType]::ParameterName, 'an extra to impersonate; repeat it for more')
            [CompletionResult]::new('--certificate-authority', '--certificate-authority', [CompletionResultType]::ParameterName, 'certificates to trust the API server by')
            [CompletionResult]::new('--client-certificate', '--client-certificate', [CompletionResultType]::ParameterName, 'client certificate')
            [CompletionResult]::new('--client-key', '--client-key', [CompletionResultType]::ParameterName, 'key of the client certificate')
            [CompletionResult]::new('--tls-server-name', '--tls-server-name', [CompletionResultType]::ParameterName, 'the name that the certificate must carry')
            [CompletionResult]::new('--request-timeout', '--request-timeout', [CompletionResultType]::ParameterName, 'limit of one request, watches excepted; a bare number is seconds, 0 none (default 30s)')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'this text')
            [CompletionResult]::new('--help-connection', '--help-connection', [CompletionResultType]::ParameterName, 'connection flags (--context, -n, --as ...)')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'the version')
            [CompletionResult]::new('--insecure-skip-tls-verify', '--insecure-skip-tls-verify', [CompletionResultType]::ParameterName, 'don''t check the API server''s certificate')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
