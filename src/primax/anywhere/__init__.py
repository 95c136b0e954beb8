"""The rewards outside the engine: any observation, any agent, any number of environments."""
