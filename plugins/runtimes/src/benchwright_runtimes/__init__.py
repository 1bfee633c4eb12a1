"""Runtimes of benchwright in a package of their own: Apache TVM, ncnn, MNN and IREE."""
