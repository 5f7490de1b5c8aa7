"""What a claim may name: registered programs, demonstrations, and code of the user in confinement."""
