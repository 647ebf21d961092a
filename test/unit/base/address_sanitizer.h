/* Defines HAS_ADDRESS_SANITIZER in builds with it, for tests of what it forbids. */
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ADDRESS_SANITIZER 1
#endif
#endif
