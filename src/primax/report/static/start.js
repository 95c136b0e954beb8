for (const start of [P.startTheme, P.paint, P.startNav, P.startTables, P.startSparks, P.startCurves, P.startSeeds, P.startMaps, P.startReplays]) start();
document.documentElement.dataset.ready = "1";
