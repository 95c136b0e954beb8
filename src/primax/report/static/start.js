for (const start of [P.startTheme, P.paint, P.startTables, P.startSparks, P.startSaves, P.startCurves, P.startSeeds, P.startMaps, P.startReplays, P.startNav]) start();
document.documentElement.dataset.ready = "1";
