"""When each alert of packaging/prometheus/alerts.yaml comes: what Prometheus' own tool for testing rules is given."""

OF_GPU = 'Hostname="n1", gpu="0", UUID="GPU-1"'
OF_TASK = f'{OF_GPU}, user="ann", task_id="t1"'
OF_DAEMON = 'job="drover", instance="n1:8080"'
NEVER = "0x400"
MINUTES = 300  # so long each case goes on, a value a minute


def slow(name, bound, faster):
    """Of a histogram that counts ten a minute: half of them took longer than `faster`."""
    return {f'{name}_bucket{{{OF_DAEMON}, le="{faster}"}}': "0+5x400", f'{name}_bucket{{{OF_DAEMON}, le="{bound}"}}': "0+10x400",
            f'{name}_bucket{{{OF_DAEMON}, le="+Inf"}}': "0+10x400"}


def quick(name, bound, faster):
    return {series: "0+10x400" for series in slow(name, bound, faster)}


# Alert -> (series with which it comes, the same with which it does not)
FIRING = {
    "DroverGpuUnhealthy": ({f"drover_gpu_healthy{{{OF_GPU}}}": "0x400"}, {f"drover_gpu_healthy{{{OF_GPU}}}": "1x400"}),
    "DroverGpuSilent": ({f"drover_gpu_answers{{{OF_GPU}}}": "0x400"}, {f"drover_gpu_answers{{{OF_GPU}}}": "1x400"}),
    "DroverGpuXid": ({f'drover_gpu_xid_errors_total{{{OF_GPU}, xid="79"}}': "_x295 1x400"},
                     {f'drover_gpu_xid_errors_total{{{OF_GPU}, xid="79"}}': "1x400"}),
    "DroverGpuMemoryErrors": ({f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{OF_GPU}}}": "0x290 3x400"}, {f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{OF_GPU}}}": "3x400"}),
    "DroverGpuWaitsForReset": ({f"DCGM_FI_DEV_RETIRED_PENDING{{{OF_GPU}}}": "1x400"}, {f"DCGM_FI_DEV_ROW_REMAP_PENDING{{{OF_GPU}}}": NEVER}),
    "DroverGpuMemoryUsedUp": ({f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{OF_GPU}}}": "1x400"}, {f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{OF_GPU}}}": NEVER}),
    "DroverGpuHot": ({f"DCGM_FI_DEV_GPU_TEMP{{{OF_GPU}}}": "88x400"}, {f"DCGM_FI_DEV_GPU_TEMP{{{OF_GPU}}}": "80x295 90x400"}),
    "DroverGpuIdle": ({f"DCGM_FI_DEV_GPU_UTIL{{{OF_GPU}}}": NEVER, f"drover_gpu_allocated{{{OF_GPU}}}": "1x400"},
                      {f"DCGM_FI_DEV_GPU_UTIL{{{OF_GPU}}}": NEVER, f"drover_gpu_allocated{{{OF_GPU}}}": "0x290 1x400"}),
    "DroverTasksWaitLong": ({'drover_queue_longest_wait_seconds{queue="q"}': "0+600x400"}, {'drover_queue_longest_wait_seconds{queue="q"}': "600x400"}),
    "DroverAppLacksInstances": ({'drover_app_running_instances{app="/a"}': "1x400", 'drover_app_wanted_instances{app="/a"}': "2x400"},
                                {'drover_app_running_instances{app="/a"}': "2x400", 'drover_app_wanted_instances{app="/a"}': "2x400"}),
    "DroverAppUnhealthy": ({'drover_app_unhealthy_instances{app="/a"}': "1x400"}, {'drover_app_unhealthy_instances{app="/a"}': NEVER}),
    "DroverShareExceeded": ({f"drover_container_gpu_share_offences_total{{{OF_TASK}}}": "0x295 1x400"},
                            {f"drover_container_gpu_share_offences_total{{{OF_TASK}}}": "1x400"}),
    "DroverShareTooSmall": ({f"drover_container_gpu_memory_refused_total{{{OF_TASK}}}": "0x295 1x400"},
                            {f"drover_container_gpu_memory_refused_total{{{OF_TASK}}}": "1x400"}),
    "DroverDown": ({f"up{{{OF_DAEMON}}}": "0x400"}, {f"up{{{OF_DAEMON}}}": "1x400", 'up{job="other"}': "0x400"}),
    "DroverJournalStandsStill": ({f"drover_journal_unsaved_events{{{OF_DAEMON}}}": "2x400"}, {f"drover_journal_unsaved_events{{{OF_DAEMON}}}": NEVER}),
    "DroverJournalSlow": (slow("drover_journal_commit_seconds", 5, 1), quick("drover_journal_commit_seconds", 5, 1)),
    "DroverDecidesLate": (slow("drover_control_lag_seconds", 5, 1), quick("drover_control_lag_seconds", 5, 1)),
    "DroverWorkWaits": ({f'drover_pool_waiting{{{OF_DAEMON}, pool="files"}}': "1x400"}, {f'drover_pool_waiting{{{OF_DAEMON}, pool="files"}}': "9x295 0 9x400"}),
    "DroverAnswersSlowly": (slow("drover_api_answer_seconds", 30, 5), quick("drover_api_answer_seconds", 30, 5)),
    "DroverAnswersWithErrors": ({f'drover_api_answers_total{{{OF_DAEMON}, code="503"}}': "0+30x400"},
                                {f'drover_api_answers_total{{{OF_DAEMON}, code="404"}}': "0+30x400"}),
    "DroverRefusesConnections": ({f"drover_api_refused_connections_total{{{OF_DAEMON}}}": "0+1x400"},
                                 {f"drover_api_refused_connections_total{{{OF_DAEMON}}}": "7x400"}),
    "DroverNodeHearsNothing": ({f'drover_source_up{{{OF_DAEMON}, source="kubelet"}}': "0x400"},
                               {f'drover_source_up{{{OF_DAEMON}, source="kubelet"}}': "1x400"}),
    "DroverPodsPrepareSlowly": (slow("drover_kube_prepare_seconds", 30, 10), quick("drover_kube_prepare_seconds", 30, 10)),
}


def unit_tests(rules):
    """A file for `promtool test rules`."""
    def case(alert, series, comes):
        return {"interval": "1m", "name": f"{alert} {'comes' if comes else 'does not come'}",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [{"expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"}})', "eval_time": f"{MINUTES}m",
                                      "exp_samples": [{"labels": "{}", "value": 1}] if comes else []}]}

    tests = [case(alert, series, comes) for alert, pair in FIRING.items() for series, comes in zip(pair, (True, False))]
    return {"rule_files": [str(rules)], "evaluation_interval": "5m", "tests": tests}
