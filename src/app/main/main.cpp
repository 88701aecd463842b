// The millrace program.
int main() { return 0; }
