#!/usr/bin/env bash
# A plain shell: files in, models.sql, files out, and what is not zero ends the script.
#   examples/models.sh [RNDN] [DEVICE]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rndn=${1:-$here/../build/bin/rndn}
device=${2:-auto}
cd "$(mktemp -d)"
printf 'shop,price\na,1.5\nb,2\na,4\nb,0\n' > sales.csv
"$rndn" sql "$here/models.sql" --device "$device"
"$rndn" sql "SELECT * FROM 'report.parquet' ORDER BY total" --device "$device" --format csv
