#!/bin/bash
# SLURM on one machine, to try a study as a job before there is a cluster. Debian or Ubuntu, as root:
#
#   bash examples/slurm/one_machine.sh start FOLDER     # installs what is missing, and starts
#   export SLURM_CONF=FOLDER/slurm.conf                 # for sbatch, squeue and scancel
#   bash examples/slurm/one_machine.sh stop FOLDER
#
# One node with the cores of this machine, without accounting, cgroups and GPUs.
set -euo pipefail
what=${1:?start or stop}
folder=$(realpath -m "${2:?a folder for configuration, state and logs}")
host=$(hostname -s)

stop() {
    for name in slurmctld slurmd munged; do
        if [ -f "$folder/$name.pid" ]; then
            kill "$(cat "$folder/$name.pid")" 2>/dev/null || true
            rm -f "$folder/$name.pid"
        fi
    done
}

configure() {
    mkdir -p "$folder/state" "$folder/spool" "$folder/munge"
    chmod 755 "$folder/munge"
    [ -f "$folder/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
    cat >"$folder/slurm.conf" <<CONF
ClusterName=one_machine
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=${ONE_MACHINE_CPUS:-$(nproc)} RealMemory=$(free -m | awk '/^Mem:/ {print $2}')
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
}

start() {
    command -v slurmctld slurmd munged >/dev/null ||
        apt-get install -y --no-install-recommends slurm-wlm munge
    configure
    stop
    munged --force --key-file="$folder/munge.key" --socket="$folder/munge/socket" \
        --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -f "$SLURM_CONF"
    slurmd -f "$SLURM_CONF"
    for _ in $(seq 120); do
        if sinfo --noheader --format=%T 2>/dev/null | grep -q idle; then
            sinfo
            echo "export SLURM_CONF=$SLURM_CONF"
            return
        fi
        sleep 1
    done
    echo "no node is idle after two minutes; see the logs in $folder" >&2
    exit 1
}

"$what"
