#include "worker/gloo_shim.h"

#include "worker/flaunch.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

namespace
{

using Milliseconds = std::chrono::milliseconds;

struct Group {
    std::shared_ptr<gloo::rendezvous::Context> context;
    uint32_t tag = 0;
};

class KvStore : public gloo::rendezvous::Store
{
  public:
    KvStore(const gloo_kv &kv, uint64_t timeout_ms)
        : kv_(kv), timeout_ms_(timeout_ms)
    {
    }

    void set(const std::string &key, const std::vector<char> &data) override
    {
        check(kv_.set(kv_.arg, key.c_str(), data.data(), data.size()), key);
    }

    std::vector<char> get(const std::string &key) override
    {
        void *data = nullptr;
        size_t len = 0;

        check(kv_.get(kv_.arg, key.c_str(), timeout_ms_, &data, &len), key);
        std::vector<char> value(static_cast<char *>(data),
                                static_cast<char *>(data) + len);
        std::free(data);
        return value;
    }

    void wait(const std::vector<std::string> &keys) override
    {
        wait(keys, Milliseconds(timeout_ms_));
    }

    void wait(const std::vector<std::string> &keys,
              const Milliseconds &timeout) override
    {
        for (const std::string &key : keys) {
            check(kv_.wait(kv_.arg, key.c_str(),
                           static_cast<uint64_t>(timeout.count())),
                  key);
        }
    }

  private:
    static void check(int rc, const std::string &key)
    {
        if (rc < 0) {
            throw std::runtime_error("store: " + key + ": " +
                                     std::strerror(-rc));
        }
    }

    gloo_kv kv_;
    uint64_t timeout_ms_;
};

/* Older releases take references, newer ones shared pointers. */
template <typename Context>
auto connect(Context &context, std::shared_ptr<KvStore> store,
             std::shared_ptr<gloo::transport::Device> device, int)
    -> decltype(context.connectFullMesh(*store, device), void())
{
    context.connectFullMesh(*store, device);
}

template <typename Context>
auto connect(Context &context, std::shared_ptr<KvStore> store,
             std::shared_ptr<gloo::transport::Device> device, long)
    -> decltype(context.connectFullMesh(store, device), void())
{
    context.connectFullMesh(store, device);
}

/* Run a piece of gloo: 0, or a negative errno with the exception's words. */
template <typename Body> int guarded(char *why, size_t why_size, Body body)
{
    try {
        body();
        return 0;
    } catch (const std::exception &e) {
        std::snprintf(why, why_size, "%s", e.what());
        return std::strstr(e.what(), "imed out") != nullptr ? -ETIMEDOUT : -EIO;
    } catch (...) {
        std::snprintf(why, why_size, "unknown exception");
        return -EIO;
    }
}

template <typename T>
using Reduce = void (*)(void *, const void *, const void *, size_t);

template <typename T> Reduce<T> reduction(int op)
{
    switch (op) {
    case FLAUNCH_SUM:
        return &gloo::sum<T>;
    case FLAUNCH_MIN:
        return &gloo::min<T>;
    case FLAUNCH_MAX:
        return &gloo::max<T>;
    case FLAUNCH_PRODUCT:
        return &gloo::product<T>;
    default:
        throw std::invalid_argument("unknown operation");
    }
}

/* Call body with a null pointer of the C++ type that type names. */
template <typename Body> void with_type(int type, Body body)
{
    switch (type) {
    case FLAUNCH_FLOAT:
        body(static_cast<float *>(nullptr));
        break;
    case FLAUNCH_DOUBLE:
        body(static_cast<double *>(nullptr));
        break;
    case FLAUNCH_INT32:
        body(static_cast<int32_t *>(nullptr));
        break;
    case FLAUNCH_INT64:
        body(static_cast<int64_t *>(nullptr));
        break;
    default:
        throw std::invalid_argument("unknown type");
    }
}

template <typename T> using Element = typename std::remove_pointer<T>::type;

int shim_open(void **group_out, const gloo_request *request, const gloo_kv *kv,
              char *why, size_t why_size)
{
    return guarded(why, why_size, [&] {
        std::unique_ptr<Group> group(new Group);
        gloo::transport::tcp::attr attr(request->address);

        group->context = std::make_shared<gloo::rendezvous::Context>(
            request->rank, request->world_size);
        group->context->setTimeout(Milliseconds(request->open_ms));
        connect(*group->context,
                std::make_shared<KvStore>(*kv, request->open_ms),
                gloo::transport::tcp::CreateDevice(attr), 0);
        group->context->setTimeout(Milliseconds(request->collective_ms));
        *group_out = group.release();
    });
}

int shim_all_reduce(void *handle, void *data, size_t count, int type, int op,
                    char *why, size_t why_size)
{
    Group *group = static_cast<Group *>(handle);

    return guarded(why, why_size, [&] {
        with_type(type, [&](auto *sample) {
            using T = Element<decltype(sample)>;
            gloo::AllreduceOptions options(group->context);

            options.setOutput(static_cast<T *>(data), count);
            options.setReduceFunction(reduction<T>(op));
            options.setTag(group->tag++);
            gloo::allreduce(options);
        });
    });
}

int shim_broadcast(void *handle, void *data, size_t count, int type, int root,
                   char *why, size_t why_size)
{
    Group *group = static_cast<Group *>(handle);

    return guarded(why, why_size, [&] {
        with_type(type, [&](auto *sample) {
            using T = Element<decltype(sample)>;
            gloo::BroadcastOptions options(group->context);

            options.setOutput(static_cast<T *>(data), count);
            options.setRoot(root);
            options.setTag(group->tag++);
            gloo::broadcast(options);
        });
    });
}

int shim_all_gather(void *handle, const void *in, void *out, size_t count,
                    int type, char *why, size_t why_size)
{
    Group *group = static_cast<Group *>(handle);

    return guarded(why, why_size, [&] {
        with_type(type, [&](auto *sample) {
            using T = Element<decltype(sample)>;
            gloo::AllgatherOptions options(group->context);
            size_t total = count * static_cast<size_t>(group->context->size);

            /* gloo's input is not const, and is not written. */
            options.setInput(const_cast<T *>(static_cast<const T *>(in)),
                             count);
            options.setOutput(static_cast<T *>(out), total);
            options.setTag(group->tag++);
            gloo::allgather(options);
        });
    });
}

int shim_barrier(void *handle, char *why, size_t why_size)
{
    Group *group = static_cast<Group *>(handle);

    return guarded(why, why_size, [&] {
        gloo::BarrierOptions options(group->context);

        options.setTag(group->tag++);
        gloo::barrier(options);
    });
}

void shim_close(void *handle)
{
    char why[64];

    (void)guarded(why, sizeof(why),
                  [&] { delete static_cast<Group *>(handle); });
}

const gloo_shim shim = {
    GLOO_SHIM_ABI,   shim_open,    shim_all_reduce, shim_broadcast,
    shim_all_gather, shim_barrier, shim_close,
};

} // namespace

const gloo_shim *flaunch_gloo_shim(void)
{
    return &shim;
}
