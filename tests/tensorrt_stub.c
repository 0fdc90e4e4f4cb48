// Stands in for libnvinfer.so.11, libnvinfer_plugin.so.11 and libnvonnxparser.so.11, so that the real TensorRT 11 Python
// bindings can be imported where TensorRT's libraries are not installed. Enums, classes, attributes and signatures are
// then the real ones; Builder() and Runtime() raise "factory function returned nullptr". Used by trt_api.py.
#include <stddef.h>

void *createInferBuilder_INTERNAL(void *logger, int version) { (void)logger, (void)version; return NULL; }
void *createInferRuntime_INTERNAL(void *logger, int version) { (void)logger, (void)version; return NULL; }
void *createInferRefitter_INTERNAL(void *engine, void *logger, int version) { (void)engine, (void)logger, (void)version; return NULL; }
void *createNvOnnxParser_INTERNAL(void *network, void *logger, int version) { (void)network, (void)logger, (void)version; return NULL; }
void *createNvOnnxParserRefitter_INTERNAL(void *refitter, void *logger, int version) { (void)refitter, (void)logger, (void)version; return NULL; }
void *getBuilderPluginRegistry(int capability) { (void)capability; return NULL; }
void *getPluginRegistry(void) { return NULL; }
int initLibNvInferPlugins(void *logger, const char *library_namespace) { (void)logger, (void)library_namespace; return 0; }
int getNvOnnxParserVersion(void) { return 0; }
