#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Speaks like `klineage-gate serve`, and judges nothing: fakegate.sh FOLDER serve. Every trial takes as long as FOLDER/hold is there (FOLDER/one
# lets one go) and answers with FOLDER/trial.json; FOLDER/log has a line as it begins, FOLDER/prepared one for each that it was told of
# beforehand. FOLDER/die kills the gate instead, once.
folder=$1
printf '{"event":"hello","version":1,"gate":"fake"}\n'
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\(-*[0-9]*\).*/\1/')
    case $line in
        *'"method":"gate"'*)
            name=$(printf '%s' "$line" | sed 's/.*"name":"\([^"]*\)".*/\1/')
            echo "$name $$" >>"$folder/log"
            if rm "$folder/die" 2>/dev/null; then kill -9 $$; fi
            while [ -e "$folder/hold" ]; do
                # A cancel comes while the trial runs.
                if [ -e "$folder/cancelled" ]; then break; fi
                if [ -e "$folder/one" ]; then rm "$folder/one"; break; fi
                sleep 0.02
            done
            if [ -e "$folder/cancelled" ]; then
                printf '{"id":%s,"event":"error","error":{"code":"cancelled","message":"The trial was cancelled."}}\n' "$id"
            else
                printf '{"id":%s,"event":"result","trial":%s}\n' "$id" "$(cat "$folder/trial.json")"
            fi
            ;;
        *'"method":"prepare"'*)
            printf '%s\n' "$line" | sed 's/.*"name":"\([^"]*\)".*/\1/' >>"$folder/prepared"
            ;;
        *'"method":"devices"'*)
            printf '{"id":%s,"event":"result","devices":[{"surface":"opencl","available":true,"name":"fake","detail":"","platform":"pocl"}]}\n' "$id"
            ;;
        *'"method":"ping"'*)
            printf '{"id":%s,"event":"result","pong":true}\n' "$id"
            ;;
    esac
done
