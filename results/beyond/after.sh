#!/bin/sh
# The task after another run's networks, and from scratch: 25,000 steps, one after the other.
# `before` holds the runs of before.toml. ε begins at 1, or is 0.05 throughout.
set -eu
for world in butterflies maze; do
  for start in 1 0.05; do
    primax train task $world --steps 25000 --set explore.start=$start --out after/none_${world}_eps-$start
    for method in prime rnd count random; do
      primax train task $world --steps 25000 --set explore.start=$start --from before/${method}_$world \
        --out after/${method}_${world}_whole_eps-$start
    done
  done
  for method in prime rnd count random; do
    primax train task $world --steps 25000 --from before/${method}_$world --take trunk \
      --out after/${method}_${world}_trunk_eps-1
  done
done
