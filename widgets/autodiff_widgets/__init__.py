"""Views of recorded graphs, orders and gradients: public names only."""
