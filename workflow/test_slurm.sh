#!/bin/sh
# A real Slurm on this one host runs the workflow, and its tables and figures are held against those of a plain `xlc run`.
#
#     sh workflow/test_slurm.sh [PARAMS]          params/smoke.yaml if not given
#
# Needs root and, of Debian, slurm-wlm and munge; in the environment in use snakemake, snakemake-executor-plugin-slurm and
# what the run needs (XLC names another command than `xlc`). Daemons, copy and results live in a new folder; SLURM_KEEP=1
# leaves it. The machine's own /etc/slurm is covered, in a mount namespace, and stays as it is. The exit code is 0 only if
# every table and figure is byte for byte the same.
set -eu
[ "${XLC_SLURM:-}" ] || XLC_SLURM=1 exec unshare --mount sh "$0" "$@"
params=${1:-params/smoke.yaml}
project=$(cd "$(dirname "$0")/.." && pwd)
xlc=${XLC:-xlc}
host=$(hostname -s)
slurm=$(mktemp -d -t xlc-slurm.XXXXXX)
chmod 755 "$slurm"
mkdir "$slurm/etc" "$slurm/state" "$slurm/spool" "$slurm/log" "$slurm/project"
# Snakemake takes SLURM_CONF from the environment of its jobs, so the file has to be where Slurm looks by itself.
mkdir -p /etc/slurm
mount --bind "$slurm/etc" /etc/slurm

stop() {
    for daemon in slurmd slurmctld munged; do
        if [ -s "$slurm/$daemon.pid" ]; then kill "$(cat "$slurm/$daemon.pid")" || true; fi
    done
    if [ "${SLURM_KEEP:-}" ]; then echo "Kept: $slurm"; else sleep 2; rm -rf "$slurm"; fi
}
trap stop EXIT
trap 'exit 130' INT TERM

# ---- the cluster: one node, what this machine has -------------------------------------------------------------------
head -c 1024 /dev/urandom > "$slurm/munge.key"
chmod 400 "$slurm/munge.key"
munged --force --key-file="$slurm/munge.key" --socket="$slurm/munge.socket" --pid-file="$slurm/munged.pid" \
    --log-file="$slurm/log/munged" --seed-file="$slurm/munge.seed"
cat > /etc/slurm/slurm.conf <<CONF
ClusterName=onehost
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.pid
SlurmctldLogFile=$slurm/log/slurmctld
SlurmdLogFile=$slurm/log/slurmd
SlurmctldPort=26817
SlurmdPort=26818
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MinJobAge=3600
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(getconf _NPROCESSORS_ONLN) RealMemory=$(awk '/MemTotal/ {print int($2 / 1024 * 0.9)}' /proc/meminfo)
PartitionName=main Nodes=ALL Default=YES State=UP
CONF
slurmctld -i
slurmd
srun --immediate=60 --ntasks=1 hostname > "$slurm/log/first"  # waits for the node, and says why if it does not come
echo "Slurm $(sinfo --version) on $(cat "$slurm/log/first"): $(sinfo --noheader --format='%P %D node, %c cores, %m MB, %T')"

# ---- the same run twice ---------------------------------------------------------------------------------------------
for part in notebooks params xlc_utils workflow; do cp -R "$project/$part" "$slurm/project/"; done
cd "$slurm/project"
export XLC_ROOT="$PWD" PYTHONPATH="$PWD"
run=$(sed -n 's/^run_name: *//p' "$params")
$xlc run "$params"
mv "results/$run" "$slurm/plain"
# This cluster keeps no accounts, so that how jobs ended is asked of the queue.
snakemake --snakefile workflow/Snakefile --profile workflow/slurm --slurm-status-command squeue \
    --slurm-init-seconds-before-status-checks 10 --config params="$params" xlc="$xlc"

echo
squeue --states=all --sort=i --format='%.6i %.9T %.4C %.7m %.10l %.19S %k'
for kind in tables figures; do
    diff --recursive "results/$run/$kind" "$slurm/plain/$kind"
    echo "$kind: $(find "results/$run/$kind" -type f | wc -l) files, byte for byte those of xlc run"
done
