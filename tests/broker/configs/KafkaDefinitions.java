import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every config that Apache Kafka defines, a line each, its parts separated by tabs. */
public class KafkaDefinitions {
    public static void main(String[] arguments) {
        print("broker", AbstractKafkaConfig.CONFIG_DEF);
        print("topic", LogConfig.configDefCopy());
        print("group", GroupConfig.CONFIG_DEF);
        print("client-metrics", ClientMetricsConfigs.configDef());
        new TreeMap<>(DynamicBrokerConfig.dynamicConfigUpdateModes())
            .forEach((name, mode) -> System.out.println("mode\t" + name + "\t" + mode));
        new TreeMap<>(ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS)
            .forEach((name, broker) -> System.out.println("synonym\t" + name + "\t" + broker));
        DynamicBrokerConfig.DYNAMIC_SECURITY_CONFIGS.stream().sorted()
            .forEach(name -> System.out.println("by-listener\t" + name));
    }

    private static void print(String kind, ConfigDef definitions) {
        for (Map.Entry<String, ConfigDef.ConfigKey> each : new TreeMap<>(definitions.configKeys()).entrySet()) {
            ConfigDef.ConfigKey key = each.getValue();
            Object value = key.hasDefault() ? key.defaultValue : null;
            ConfigDef.Type shown = value instanceof String ? ConfigDef.Type.STRING : key.type;
            String text = value == null ? "none" : "=" + ConfigDef.convertToString(value, shown);
            System.out.println(String.join("\t", kind, key.name, key.type.toString(), text,
                key.validator == null ? "" : key.validator.toString(), key.internalConfig ? "internal" : ""));
        }
    }
}
