"""Classes of users: EM around a click model of one class, and the joint posterior."""
