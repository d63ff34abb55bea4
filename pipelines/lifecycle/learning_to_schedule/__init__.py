"""MLF-RL and Device RL trained: rollouts, imitation of MLF-H, policy gradient, weights of the reward, a comparison."""
