import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.protocol.Errors;

/** What the Java client throws by an error code: each argument's exception, and what that extends. */
public class ErrorStory {
  public static void main(String[] args) {
    for (String code : args) {
      List<String> classes = new ArrayList<>();
      Class<?> each = Errors.forCode(Short.parseShort(code)).exception().getClass();
      for (; !each.getSimpleName().equals("ApiException"); each = each.getSuperclass()) classes.add(each.getSimpleName());
      System.out.println(code + "=" + String.join(" ", classes));
    }
  }
}
