"""Checks of the Terraform module that need neither AWS nor the provider registry."""
